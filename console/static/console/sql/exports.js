// @ts-check
/** Results as files: what is shown, or all rows of a statement whose result was cut. */

import { FORMATS, ndjson } from "../grid/copies.js";
import { call } from "../lib/api.js";
import { byId, show } from "../lib/dom.js";
import { save } from "../lib/download.js";
import { Problem } from "../lib/problem.js";
import { announce, tell } from "../lib/status.js";

/**
 * Make the buttons of the download menu work.
 * @param {import("./results.js").Results} results
 * @param {() => string} ran the text that gave them
 */
export function bindExports(results, ran) {
  const menu = /** @type {HTMLDetailsElement} */ (byId("export-menu"));
  menu.addEventListener("toggle", () => {
    // Of several statements one cannot be run by itself: it may need what those before it did.
    const isCut = results.shown?.truncated === true && results.answer?.results.length === 1;
    show(byId("export-all"), isCut);
  });
  for (const button of menu.querySelectorAll("button[data-format]")) {
    const { format = "csv", all } = /** @type {HTMLElement} */ (button).dataset;
    button.addEventListener("click", () => {
      menu.open = false;
      if (all === undefined) shownRows(results, /** @type {keyof typeof FORMATS} */ (format)).catch(tell);
      else allRows(ran(), /** @type {keyof typeof FORMATS} */ (format)).catch(tell);
    });
  }
}

/**
 * @param {import("./results.js").Results} results
 * @param {keyof typeof FORMATS} format
 */
async function shownRows({ shown, grid }, format) {
  if (!shown) return;
  const { type, write } = FORMATS[format];
  save(nameOf(format), write(shown.columns, await grid.whole(grid.rows)), type);
}

/**
 * Run the statement again, as a reader, and save the stream.
 * @param {string} query
 * @param {keyof typeof FORMATS} format
 */
async function allRows(query, format) {
  announce("The rows are being fetched …");
  const body = { query, read_only: true, format, ...(format === "ndjson" ? { rows: "arrays", values: "text" } : {}) };
  const stream = await call("POST", "/v1/sql", body, { headers: { Accept: FORMATS[format].type }, as: "blob", isRead: true });
  save(nameOf(format), format === "ndjson" ? await objectsOf(stream) : stream, FORMATS[format].type);
}

/**
 * Return the rows of a stream as those that are shown are written.
 * @param {Blob} stream records: the columns, then rows of texts, at last the end or an error
 * @throws {Problem} the stream's own
 */
async function objectsOf(stream) {
  const parts = [];
  /** @type {import("../grid/values.js").Column[]} */
  let columns = [];
  let rest = "";
  const reader = stream.stream().pipeThrough(new TextDecoderStream()).getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const lines = (rest + read.value).split("\n");
    rest = lines.pop() ?? "";
    const records = lines.map((line) => JSON.parse(line));
    columns = records.find((record) => record.columns)?.columns ?? columns;
    const { error } = records.at(-1) ?? {};
    if (error) throw new Problem(error.status, error);
    parts.push(ndjson(columns, records.filter(Array.isArray)));
  }
  return new Blob(parts);
}

/** @param {string} format */
function nameOf(format) {
  return `result-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.${format}`;
}
