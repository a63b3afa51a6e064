/**
 * JSON that holds what it was made from, or an error.
 *
 * JSON.stringify and JSON.parse alone change values without an error.
 */
/** A value that cannot be sent; nothing was. */
export declare class ValueError extends TypeError {
    name: string;
}
/** The values of $1, $2 and so on of a statement; `statement` is its number in a batch. */
export declare class Parameters {
    readonly values: readonly unknown[] | undefined;
    readonly statement?: number | undefined;
    constructor(values: readonly unknown[] | undefined, statement?: number | undefined);
}
/** Return a body as JSON. Throws ValueError for what neither JSON nor PostgreSQL has. */
export declare function encoded(body: unknown): string;
/** Throws ValueError for what UTF-8 does not have: it would be sent as other characters. */
export declare function checkText(value: string, place: string): void;
/** Return what an answer's JSON holds; a number that JavaScript's cannot hold is kept as its text. */
export declare function decoded(source: string): unknown;
/** Return the value of a column of json, or of an array of it. Throws UnreadableAnswerError. */
export declare function decodedJson(value: unknown): unknown;
