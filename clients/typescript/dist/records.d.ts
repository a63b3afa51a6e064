/** NDJSON: records out of a body that comes in pieces, in memory of one line. */
/** Return the records of a body; leaving the loop early cancels it. */
export declare function records(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown>;
/** Return the pieces of a body; leaving the loop early cancels it. */
export declare function pieces(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array>;
