// @ts-check
/**
 * A query whose values are too long for an answer is read again, as a reader: the beginning of each
 * value, and the rest when it is opened. No long value keeps the rows after it from being seen.
 */

import { LongValue } from "../grid/values.js";
import { get, query as read } from "../lib/api.js";
import { byId, show } from "../lib/dom.js";
import { onClick } from "../lib/forms.js";
import { piece, rowOf, selected } from "../lib/long_values.js";
import { Problem } from "../lib/problem.js";
import { tell } from "../lib/status.js";
import { statementsOf } from "./lexer.js";

/** @typedef {import("./run.js").Answer} Answer */

/** Texts that can be a part of another query; what writes in one is refused to a reader. */
const QUERY = /^(?:\s|--[^\n]*\n|\/\*[^]*?\*\/)*(?:SELECT|WITH|VALUES|TABLE|\()/i;

/**
 * Make the button work that reads a query in part.
 * @param {(answer: Answer) => void} onRead
 * @returns {(text: string, ended: Answer | Problem) => Promise<void>} offers it for a query that has ended, where that helps
 */
export function bindInPart(onRead) {
  let query = "";
  onClick(byId("read-in-part"), () => readInPart(query).then(onRead).catch(tell));
  return async (text, ended) => {
    query = queryOf(text);
    show(byId("read-in-part"), query !== "" && (await isTooLong(ended)));
  };
}

/** Return the only statement of a text, '' if it cannot be read in part. @param {string} text */
function queryOf(text) {
  const all = statementsOf(text);
  const one = all.length === 1 ? text.slice(all[0].from, all[0].to).replace(/;\s*$/, "") : "";
  return QUERY.test(one) ? one : "";
}

/** True if a result is cut, or refused, because of its values' length. @param {Answer | Problem} ended */
async function isTooLong(ended) {
  if (ended instanceof Problem) return ended.code === "result_too_large";
  const [{ rows, truncated }] = ended.results;
  return truncated && rows.length < (await get("/v1/sql/usage")).statements.max_rows;
}

/**
 * @param {string} query
 * @returns {Promise<Answer>}
 */
async function readInPart(query) {
  const { columns } = await ask(`SELECT * FROM (\n${query}\n) AS q LIMIT 0`);
  const names = columns.map((/** @type {unknown} */ _, /** @type {number} */ at) => `c${at}`);
  const from = `FROM (\n${query}\n) AS q (${names.join(", ")})`;
  /** @type {import("../lib/long_values.js").Source[]} */
  const sources = columns.map((/** @type {{type: string}} */ { type }, /** @type {number} */ at) => ({ expression: `q.c${at}`, type }));
  const answer = await ask(`SELECT ${selected(sources)} ${from}`);
  const rows = answer.rows.map((/** @type {(string | null)[]} */ row, /** @type {number} */ number) =>
    rowOf(sources, row, (start, bytes, column) => new LongValue(start, bytes, (at, most) => pieceOf(sources[column], start, { from, number, at, most }))),
  );
  const result = { columns, rows, row_count: rows.length, command: "SELECT", truncated: answer.truncated };
  return { results: [result], notices: answer.notices, elapsedMs: answer.stats.elapsed_ms };
}

/**
 * Read a piece of a value.
 * @param {import("../lib/long_values.js").Source} source
 * @param {string} start the value's beginning, as it was read
 * @param {{from: string, number: number, at: number, most?: number}} place of the row, and in the value
 */
async function pieceOf(source, start, { from, number, at, most }) {
  const { rows } = await ask(`SELECT ${piece(source, at, most)}, ${selected([source])} ${from} LIMIT 1 OFFSET ${number}`);
  const [text, beginning] = rows[0] ?? [];
  if (!(beginning ?? "").startsWith(start)) throw new Problem(409, { title: "The query has another result now. Run it again." });
  return text ?? "";
}

/** Run one statement, which writes nothing. @param {string} query */
function ask(query) {
  return read("/v1/sql", { query, params: [], read_only: true, rows: "arrays", values: "text" });
}
