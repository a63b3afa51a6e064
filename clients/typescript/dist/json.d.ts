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
/** What a column of these types adds to an answer's columns; only json keeps a repeated key. */
export declare const JSON_COLUMN = "\"type\":\"json";
/**
 * Return what a JSON text holds; a number that JavaScript's cannot hold is kept as its text.
 *
 * Throws SyntaxError, and UnreadableAnswerError for an object in which a key is repeated.
 */
export declare function decoded(source: string, hasJsonColumn?: boolean): unknown;
