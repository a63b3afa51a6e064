/** Requests to the platform: authorized, repeated where that is safe, refused with typed errors. */
import type { Retries } from "./retries.js";
import type { Credentials } from "./tokens.js";
export interface Call {
    method: string;
    path: string;
    body?: unknown;
    /** A body that is no JSON, with its Content-Type among the headers; it can be sent twice. */
    content?: Blob | string | BufferSource;
    params?: Record<string, string | number | boolean | undefined>;
    headers?: Record<string, string | undefined>;
    /** True if a second one changes nothing. */
    isRepeatable?: boolean;
    /** In place of the client's own. */
    token?: string;
    isAnonymous?: boolean;
    /** In place of the client's own. */
    timeoutMs?: number;
    signal?: AbortSignal;
}
export declare class Transport {
    private readonly base;
    readonly credentials: Credentials;
    private readonly retries;
    private readonly timeoutMs;
    private readonly fetcher;
    constructor(base: string, credentials: Credentials, retries: Retries, timeoutMs: number, fetcher: typeof fetch);
    /** Return the answer's JSON, undefined if it has no body. */
    call<T>(call: Call): Promise<T>;
    /** Return the error of a successful answer whose body could not be read. */
    private unread;
    /** Return a successful response, whose body is yet to be read. */
    send(call: Call): Promise<Response>;
    /** Send once; the time limit is that of the answer's beginning. */
    private fetched;
    private isRenewed;
}
