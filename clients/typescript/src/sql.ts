/** SQL over HTTP: queries, streams of rows, transactions. */

import { problemOf, ProblemError, StreamCutError, ZonalError } from "./errors.js";
import type { Problem } from "./errors.js";
import { checkText, decodedJson, Parameters, ValueError } from "./json.js";
import { pieces, records } from "./records.js";
import type { Transport } from "./transport.js";
import type { Column, Import, Notice, Result, Schema, SqlAnswer, Stats, Transaction, Usage } from "./types.js";

export type Isolation = "read committed" | "repeatable read" | "serializable";
/** A row as an object; the platform's docs/sql.md says which JSON each type has. */
export type Row = Record<string, unknown>;
/** A text alone, or a text with the values of $1, $2 and so on. */
export type Statement = string | { query: string; params?: readonly unknown[] };

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
export type Answer<T> = Omit<SqlAnswer, "rows"> & { rows: T[] };

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

const PATH = "/v1/sql";
const JSON_TYPES = new Set(["json", "jsonb", "json[]", "jsonb[]"]);
/** The platform ends an import after ten minutes by itself. */
const IMPORT_TIMEOUT_MS = 660_000;

/** The database of the session's environment. */
export class Sql {
  constructor(private readonly transport: Transport) {}

  /** Run a text and return its result; with params it holds one statement. */
  async query<T = Row>(
    query: string,
    params?: readonly unknown[],
    options: QueryOptions = {},
  ): Promise<Answer<T>> {
    return this.run({ query, ...given(params), ...written(options) }, options);
  }

  /** Run statements as one transaction. */
  async batch(
    statements: readonly Statement[],
    options: QueryOptions = {},
  ): Promise<Answer<Row> & { results?: Result[] }> {
    const queries = statements.map((each, index) =>
      typeof each === "string" ? { query: each } : { ...each, ...given(each.params, index + 1) },
    );
    return this.run({ queries, ...written(options) }, options);
  }

  /**
   * Run one statement and return its rows as they come, without a cap, in constant memory.
   *
   * Leaving the loop ends the statement if it still runs.
   */
  async stream<T = Row>(
    query: string,
    params?: readonly unknown[],
    options: StatementOptions & { readOnly?: boolean; requestId?: string } = {},
  ): Promise<Rows<T>> {
    // In arrays no column's name can be taken for the record of an error or of the end.
    const body = { query, ...given(params), format: "ndjson", rows: "arrays", ...written(options) };
    return Rows.opened(await this.opened(body, "application/x-ndjson", options), options.json);
  }

  /** Run one statement and return its result as a file, in constant memory. */
  async export(
    query: string,
    params?: readonly unknown[],
    options: Omit<StatementOptions, "json" | "numeric"> & { readOnly?: boolean; format?: "csv" | "arrow" } = {},
  ): Promise<AsyncGenerator<Uint8Array>> {
    const format = options.format ?? "csv";
    const { timeoutMs, readOnly } = options;
    const body = { query, ...given(params), read_only: readOnly, timeout_ms: timeoutMs, format };
    return pieces(await this.opened(body, "*/*", options));
  }

  /** Put the rows of a CSV file into a table, as SQL names it: all of them, or none. */
  async importCsv(
    table: string,
    content: Blob | string | BufferSource,
    options: ImportOptions = {},
  ): Promise<Import> {
    if (typeof content === "string") checkText(content, "The file");
    return this.transport.call<Import>({
      method: "POST",
      path: `${PATH}/import`,
      params: {
        table,
        columns: options.columns?.map(identifier).join(","),
        skip: options.skip?.map(identifier).join(","),
        header: options.header,
        delimiter: options.delimiter,
      },
      headers: {
        "Content-Type": "text/csv",
        "Content-Encoding": options.isGzip ? "gzip" : undefined,
      },
      content,
      timeoutMs: IMPORT_TIMEOUT_MS,
      signal: options.signal,
    });
  }

  /** Run a function in a transaction: commit after it, roll back if it throws. */
  async transaction<T>(
    work: (transaction: OpenTransaction) => Promise<T>,
    options: { isolation?: Isolation; readOnly?: boolean } = {},
  ): Promise<T> {
    const begun = await this.transport.call<Transaction>({
      method: "POST",
      path: `${PATH}/transactions`,
      body: { isolation: options.isolation, read_only: options.readOnly },
    });
    const opened = new OpenTransaction(this.transport, begun.id);
    let result: T;
    try {
      result = await work(opened);
    } catch (error) {
      // Nothing may hide the first error; the platform rolls back by itself after seconds.
      await opened.rollback().catch((late: unknown) => {
        if (!(late instanceof ZonalError)) throw late;
      });
      throw error;
    }
    if (!opened.isOver) await opened.commit();
    return result;
  }

  /** Return what the caller's role may see of the database. */
  async schema(schema?: string): Promise<Schema> {
    return this.transport.call({ method: "GET", path: `${PATH}/schema`, params: { schema } });
  }

  /** Return what the environment uses of its disk and what the other limits are. */
  async usage(): Promise<Usage> {
    return this.transport.call({ method: "GET", path: `${PATH}/usage` });
  }

  /** Cancel a running request by the id that it was sent with. */
  async cancel(requestId: string): Promise<void> {
    const path = `${PATH}/${encodeURIComponent(requestId)}`;
    await this.transport.call({ method: "DELETE", path });
  }

  private async run<T extends object>(body: object, options: QueryOptions): Promise<T> {
    const answer = await this.transport.call<T>({
      method: "POST",
      path: PATH,
      body,
      headers: {
        "Idempotency-Key": options.idempotencyKey,
        "X-Request-Id": options.requestId,
      },
      isRepeatable: options.idempotencyKey !== undefined || options.readOnly === true,
      signal: options.signal,
    });
    return withJson(answer, options.json);
  }

  private async opened(
    body: object,
    accept: string,
    options: { readOnly?: boolean; requestId?: string; signal?: AbortSignal },
  ): Promise<ReadableStream<Uint8Array>> {
    const response = await this.transport.send({
      method: "POST",
      path: PATH,
      body,
      headers: { Accept: accept, "X-Request-Id": options.requestId },
      isRepeatable: options.readOnly === true,
      signal: options.signal,
    });
    if (response.body === null) throw new StreamCutError("The answer has no body.");
    return response.body;
  }
}

/** A column's name as SQL quotes it, so that it is taken as it is. */
function identifier(name: string): string {
  return `"${name.replace(/"/g, '""')}"`;
}

/** The rows of a stream: iterate over it once for objects, or over `arrays()`. */
export class Rows<T = Row> implements AsyncIterable<T> {
  /** Known after the last row. */
  end: StreamEnd | undefined;

  private constructor(
    /** Known from the beginning. */
    readonly columns: Column[],
    private readonly records: AsyncGenerator<unknown>,
    private readonly json: Json | undefined,
  ) {}

  /** Read the first record of a body. */
  static async opened<T>(body: ReadableStream<Uint8Array>, json?: Json): Promise<Rows<T>> {
    const found = records(body);
    const first = await found.next();
    if (first.done) throw new StreamCutError("The stream was cut before its first record.");
    throwError(first.value);
    return new Rows<T>((first.value as { columns: Column[] }).columns, found, json);
  }

  /** Return the rows as objects; a second column of one name is `name_2`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    const names = this.columns.map((column) => column.key ?? column.name);
    for await (const row of this.arrays()) {
      yield Object.fromEntries(names.map((name, index) => [name, row[index]])) as unknown as T;
    }
  }

  /** Return the rows as arrays, in the order of the columns. */
  async *arrays(): AsyncGenerator<unknown[]> {
    const read = reader(this.columns, this.json);
    for await (const record of this.records) {
      if (Array.isArray(record)) {
        read(record);
        yield record;
        continue;
      }
      throwError(record);
      const { end } = record as { end?: StreamEnd };
      if (end !== undefined) {
        this.end = end;
        return;
      }
    }
    throw new StreamCutError("The stream was cut: rows are missing.");
  }

  /** End the statement without reading the rest. */
  async close(): Promise<void> {
    await this.records.return(undefined);
  }
}

/** An open transaction; its statements are numbered, so one with a lost answer runs once. */
export class OpenTransaction {
  isOver = false;
  private number = 0;
  private isNumberCertain = true;

  constructor(
    private readonly transport: Transport,
    readonly id: string,
  ) {}

  /** Run the next statement. */
  async query<T = Row>(
    query: string,
    params?: readonly unknown[],
    options: StatementOptions & { maxRows?: number } = {},
  ): Promise<Answer<T>> {
    const body = { query, ...given(params), ...written(options) };
    this.number++;
    let answer: Answer<T>;
    try {
      answer = await this.statement(body, options.signal);
    } catch (error) {
      const expected = error instanceof ProblemError ? Number(error.body["expected"]) : 0;
      const isOutOfOrder =
        error instanceof ProblemError && error.code === "statement_out_of_order" && expected > 0;
      if (!isOutOfOrder || this.isNumberCertain) {
        this.isNumberCertain = false;
        throw error;
      }
      // An earlier statement was refused before it got its number; nothing ran of this one.
      this.number = expected;
      answer = await this.statement(body, options.signal);
    }
    this.isNumberCertain = true;
    return withJson(answer, options.json);
  }

  /** Commit; the request is repeated until the platform says what happened. */
  async commit(): Promise<void> {
    const path = `${PATH}/transactions/${this.id}/commit`;
    await this.transport.call({ method: "POST", path, isRepeatable: true });
    this.isOver = true;
  }

  /** Roll back. */
  async rollback(): Promise<void> {
    this.isOver = true;
    await this.transport.call({ method: "DELETE", path: `${PATH}/transactions/${this.id}` });
  }

  private statement<T>(body: object, signal: AbortSignal | undefined): Promise<Answer<T>> {
    return this.transport.call({
      method: "POST",
      path: `${PATH}/transactions/${this.id}/statements`,
      body: { ...body, number: this.number },
      isRepeatable: true,
      signal,
    });
  }
}

function given(params: readonly unknown[] | undefined, statement?: number): object {
  return params === undefined || params === null ? {} : { params: new Parameters(params, statement) };
}

/** Return options as the API names them. */
function written(options: QueryOptions & { maxRows?: number }): object {
  return {
    read_only: options.readOnly,
    isolation: options.isolation,
    timeout_ms: options.timeoutMs,
    max_rows: options.maxRows,
    numeric: options.numeric,
    json: jsonMode(options.json),
    explain: options.explain,
  };
}

function jsonMode(json: Json | undefined): "string" {
  if (json === undefined || json === "string" || json === "parsed") return "string";
  throw new ValueError(`json is "string" or "parsed", not ${JSON.stringify(json)}.`);
}

/** Return an answer with the values of json that were asked for; it comes as text. */
function withJson<T extends object>(answer: T, json: Json | undefined): T {
  if (json !== "parsed") return answer;
  const { results = [], ...last } = answer as unknown as Partial<SqlAnswer>;
  for (const { columns = [], rows = [] } of [last, ...results]) {
    rows.forEach(reader(columns, json));
  }
  return answer;
}

/** Return a function that reads the json of a row, an object or an array. */
function reader(columns: readonly Column[], json: Json | undefined): (row: unknown) => void {
  const places: [number, string][] = [];
  columns.forEach(({ key, name, type }, index) => {
    if (json === "parsed" && JSON_TYPES.has(type)) places.push([index, key ?? name]);
  });
  return (row) => {
    for (const [index, name] of places) {
      const values = row as Record<string | number, unknown>;
      const place = Array.isArray(row) ? index : name;
      values[place] = decodedJson(values[place]);
    }
  };
}

function throwError(record: unknown): void {
  const error = (record as { error?: Problem }).error;
  if (error !== undefined && !Array.isArray(record)) throw problemOf(error.status ?? 500, error);
}
