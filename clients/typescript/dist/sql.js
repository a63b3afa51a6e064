/** SQL over HTTP: queries, streams of rows, transactions. */
import { problemOf, ProblemError, StreamCutError, ZonalError } from "./errors.js";
import { checkText, decodedJson, Parameters, ValueError } from "./json.js";
import { pieces, records } from "./records.js";
const PATH = "/v1/sql";
const JSON_TYPES = new Set(["json", "jsonb", "json[]", "jsonb[]"]);
/** The platform ends an import after ten minutes by itself. */
const IMPORT_TIMEOUT_MS = 660000;
/** The database of the session's environment. */
export class Sql {
    constructor(transport) {
        this.transport = transport;
    }
    /** Run a text and return its result; with params it holds one statement. */
    async query(query, params, options = {}) {
        return this.run({ query, ...given(params), ...written(options) }, options);
    }
    /** Run statements as one transaction. */
    async batch(statements, options = {}) {
        const queries = statements.map((each, index) => typeof each === "string" ? { query: each } : { ...each, ...given(each.params, index + 1) });
        return this.run({ queries, ...written(options) }, options);
    }
    /**
     * Run one statement and return its rows as they come, without a cap, in constant memory.
     *
     * Leaving the loop ends the statement if it still runs.
     */
    async stream(query, params, options = {}) {
        // In arrays no column's name can be taken for the record of an error or of the end.
        const body = { query, ...given(params), format: "ndjson", rows: "arrays", ...written(options) };
        return Rows.opened(await this.opened(body, "application/x-ndjson", options), options.json);
    }
    /** Run one statement and return its result as a file, in constant memory. */
    async export(query, params, options = {}) {
        const format = options.format ?? "csv";
        const { timeoutMs, readOnly } = options;
        const body = { query, ...given(params), read_only: readOnly, timeout_ms: timeoutMs, format };
        return pieces(await this.opened(body, "*/*", options));
    }
    /** Put the rows of a CSV file into a table, as SQL names it: all of them, or none. */
    async importCsv(table, content, options = {}) {
        if (typeof content === "string")
            checkText(content, "The file");
        return this.transport.call({
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
    async transaction(work, options = {}) {
        const begun = await this.transport.call({
            method: "POST",
            path: `${PATH}/transactions`,
            body: { isolation: options.isolation, read_only: options.readOnly },
        });
        const opened = new OpenTransaction(this.transport, begun.id);
        let result;
        try {
            result = await work(opened);
        }
        catch (error) {
            // Nothing may hide the first error; the platform rolls back by itself after seconds.
            await opened.rollback().catch((late) => {
                if (!(late instanceof ZonalError))
                    throw late;
            });
            throw error;
        }
        if (!opened.isOver)
            await opened.commit();
        return result;
    }
    /** Return what the caller's role may see of the database. */
    async schema(schema) {
        return this.transport.call({ method: "GET", path: `${PATH}/schema`, params: { schema } });
    }
    /** Return what the environment uses of its disk and what the other limits are. */
    async usage() {
        return this.transport.call({ method: "GET", path: `${PATH}/usage` });
    }
    /** Cancel a running request by the id that it was sent with. */
    async cancel(requestId) {
        const path = `${PATH}/${encodeURIComponent(requestId)}`;
        await this.transport.call({ method: "DELETE", path });
    }
    async run(body, options) {
        const answer = await this.transport.call({
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
    async opened(body, accept, options) {
        const response = await this.transport.send({
            method: "POST",
            path: PATH,
            body,
            headers: { Accept: accept, "X-Request-Id": options.requestId },
            isRepeatable: options.readOnly === true,
            signal: options.signal,
        });
        if (response.body === null)
            throw new StreamCutError("The answer has no body.");
        return response.body;
    }
}
/** A column's name as SQL quotes it, so that it is taken as it is. */
function identifier(name) {
    return `"${name.replace(/"/g, '""')}"`;
}
/** The rows of a stream: iterate over it once for objects, or over `arrays()`. */
export class Rows {
    constructor(
    /** Known from the beginning. */
    columns, records, json) {
        this.columns = columns;
        this.records = records;
        this.json = json;
    }
    /** Read the first record of a body. */
    static async opened(body, json) {
        const found = records(body);
        const first = await found.next();
        if (first.done)
            throw new StreamCutError("The stream was cut before its first record.");
        throwError(first.value);
        return new Rows(first.value.columns, found, json);
    }
    /** Return the rows as objects; a second column of one name is `name_2`. */
    async *[Symbol.asyncIterator]() {
        const names = this.columns.map((column) => column.key ?? column.name);
        for await (const row of this.arrays()) {
            yield Object.fromEntries(names.map((name, index) => [name, row[index]]));
        }
    }
    /** Return the rows as arrays, in the order of the columns. */
    async *arrays() {
        const read = reader(this.columns, this.json);
        for await (const record of this.records) {
            if (Array.isArray(record)) {
                read(record);
                yield record;
                continue;
            }
            throwError(record);
            const { end } = record;
            if (end !== undefined) {
                this.end = end;
                return;
            }
        }
        throw new StreamCutError("The stream was cut: rows are missing.");
    }
    /** End the statement without reading the rest. */
    async close() {
        await this.records.return(undefined);
    }
}
/** An open transaction; its statements are numbered, so one with a lost answer runs once. */
export class OpenTransaction {
    constructor(transport, id) {
        this.transport = transport;
        this.id = id;
        this.isOver = false;
        this.number = 0;
        this.isNumberCertain = true;
    }
    /** Run the next statement. */
    async query(query, params, options = {}) {
        const body = { query, ...given(params), ...written(options) };
        this.number++;
        let answer;
        try {
            answer = await this.statement(body, options.signal);
        }
        catch (error) {
            const expected = error instanceof ProblemError ? Number(error.body["expected"]) : 0;
            const isOutOfOrder = error instanceof ProblemError && error.code === "statement_out_of_order" && expected > 0;
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
    async commit() {
        const path = `${PATH}/transactions/${this.id}/commit`;
        await this.transport.call({ method: "POST", path, isRepeatable: true });
        this.isOver = true;
    }
    /** Roll back. */
    async rollback() {
        this.isOver = true;
        await this.transport.call({ method: "DELETE", path: `${PATH}/transactions/${this.id}` });
    }
    statement(body, signal) {
        return this.transport.call({
            method: "POST",
            path: `${PATH}/transactions/${this.id}/statements`,
            body: { ...body, number: this.number },
            isRepeatable: true,
            signal,
        });
    }
}
function given(params, statement) {
    return params === undefined || params === null ? {} : { params: new Parameters(params, statement) };
}
/** Return options as the API names them. */
function written(options) {
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
function jsonMode(json) {
    if (json === undefined || json === "string" || json === "parsed")
        return "string";
    throw new ValueError(`json is "string" or "parsed", not ${JSON.stringify(json)}.`);
}
/** Return an answer with the values of json that were asked for; it comes as text. */
function withJson(answer, json) {
    if (json !== "parsed")
        return answer;
    const { results = [], ...last } = answer;
    for (const { columns = [], rows = [] } of [last, ...results]) {
        rows.forEach(reader(columns, json));
    }
    return answer;
}
/** Return a function that reads the json of a row, an object or an array. */
function reader(columns, json) {
    const places = [];
    columns.forEach(({ key, name, type }, index) => {
        if (json === "parsed" && JSON_TYPES.has(type))
            places.push([index, key ?? name]);
    });
    return (row) => {
        for (const [index, name] of places) {
            const values = row;
            const place = Array.isArray(row) ? index : name;
            values[place] = decodedJson(values[place]);
        }
    };
}
function throwError(record) {
    const error = record.error;
    if (error !== undefined && !Array.isArray(record))
        throw problemOf(error.status ?? 500, error);
}
