/** SQL over HTTP: queries, streams of rows, transactions. */
import type { Transport } from "./transport.js";
import type { Column, Import, Notice, Result, Schema, SqlAnswer, Stats, Usage } from "./types.js";
export type Isolation = "read committed" | "repeatable read" | "serializable";
/** A row as an object; the platform's docs/sql.md says which JSON each type has. */
export type Row = Record<string, unknown>;
/** A text alone, or a text with the values of $1, $2 and so on. */
export type Statement = string | {
    query: string;
    params?: readonly unknown[];
};
export type Json = "string" | "parsed";
export interface StatementOptions {
    timeoutMs?: number;
    /** `string`, or `number` for the bare literal. */
    numeric?: "string" | "number";
    /** json and jsonb as PostgreSQL's text, which they are without it, or as values. */
    json?: Json;
    signal?: AbortSignal;
}
export interface QueryOptions extends StatementOptions {
    readOnly?: boolean;
    isolation?: Isolation;
    maxRows?: number;
    explain?: boolean | "analyze";
    /** A write with one happens once, so it is repeated when its answer is lost. */
    idempotencyKey?: string;
    /** What `cancel` takes. */
    requestId?: string;
}
/** An answer whose rows are of a type. */
export type Answer<T> = Omit<SqlAnswer, "rows"> & {
    rows: T[];
};
/** What a complete stream of rows ends with. */
export interface StreamEnd {
    row_count: number;
    command: string;
    notices: Notice[];
    stats: Stats;
    request_id: string;
}
export interface ImportOptions {
    /** Of the body, in its order; the table's without them. */
    columns?: readonly string[];
    /** Columns of the body that are not imported. */
    skip?: readonly string[];
    /** Whether the first line names the columns, is skipped, or is a row. */
    header?: "match" | boolean;
    delimiter?: "," | ";" | "\t" | "|";
    isGzip?: boolean;
    signal?: AbortSignal;
}
/** The database of the session's environment. */
export declare class Sql {
    private readonly transport;
    constructor(transport: Transport);
    /** Run a text and return its result; with params it holds one statement. */
    query<T = Row>(query: string, params?: readonly unknown[], options?: QueryOptions): Promise<Answer<T>>;
    /** Run statements as one transaction. */
    batch(statements: readonly Statement[], options?: QueryOptions): Promise<Answer<Row> & {
        results?: Result[];
    }>;
    /**
     * Run one statement and return its rows as they come, without a cap, in constant memory.
     *
     * Leaving the loop ends the statement if it still runs.
     */
    stream<T = Row>(query: string, params?: readonly unknown[], options?: StatementOptions & {
        readOnly?: boolean;
        requestId?: string;
    }): Promise<Rows<T>>;
    /** Run one statement and return its result as a file, in constant memory. */
    export(query: string, params?: readonly unknown[], options?: Omit<StatementOptions, "json" | "numeric"> & {
        readOnly?: boolean;
        format?: "csv" | "arrow";
    }): Promise<AsyncGenerator<Uint8Array>>;
    /** Put the rows of a CSV file into a table, as SQL names it: all of them, or none. */
    importCsv(table: string, content: Blob | string | BufferSource, options?: ImportOptions): Promise<Import>;
    /** Run a function in a transaction: commit after it, roll back if it throws. */
    transaction<T>(work: (transaction: OpenTransaction) => Promise<T>, options?: {
        isolation?: Isolation;
        readOnly?: boolean;
    }): Promise<T>;
    /** Return what the caller's role may see of the database. */
    schema(schema?: string): Promise<Schema>;
    /** Return what the environment uses of its disk and what the other limits are. */
    usage(): Promise<Usage>;
    /** Cancel a running request by the id that it was sent with. */
    cancel(requestId: string): Promise<void>;
    private run;
    private opened;
}
/** The rows of a stream: iterate over it once for objects, or over `arrays()`. */
export declare class Rows<T = Row> implements AsyncIterable<T> {
    /** Known from the beginning. */
    readonly columns: Column[];
    private readonly records;
    private readonly json;
    /** Known after the last row. */
    end: StreamEnd | undefined;
    private constructor();
    /** Read the first record of a body. */
    static opened<T>(body: ReadableStream<Uint8Array>, json?: Json): Promise<Rows<T>>;
    /** Return the rows as objects; a second column of one name is `name_2`. */
    [Symbol.asyncIterator](): AsyncGenerator<T>;
    /** Return the rows as arrays, in the order of the columns. */
    arrays(): AsyncGenerator<unknown[]>;
    /** End the statement without reading the rest. */
    close(): Promise<void>;
}
/** An open transaction; its statements are numbered, so one with a lost answer runs once. */
export declare class OpenTransaction {
    private readonly transport;
    readonly id: string;
    isOver: boolean;
    private number;
    private isNumberCertain;
    constructor(transport: Transport, id: string);
    /** Run the next statement. */
    query<T = Row>(query: string, params?: readonly unknown[], options?: StatementOptions & {
        maxRows?: number;
    }): Promise<Answer<T>>;
    /** Commit; the request is repeated until the platform says what happened. */
    commit(): Promise<void>;
    /** Roll back. */
    rollback(): Promise<void>;
    private statement;
}
