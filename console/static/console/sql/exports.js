// @ts-check
/** Results as files: what is shown, or all rows of a statement whose result was cut. */

import { call } from "../lib/api.js";
import { byId, show } from "../lib/dom.js";
import { save } from "../lib/download.js";
import { FORMATS } from "../grid/copies.js";
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
  const body = { query, read_only: true, format };
  save(nameOf(format), await call("POST", "/v1/sql", body, { headers: { Accept: FORMATS[format].type }, as: "blob" }));
}

/** @param {string} format */
function nameOf(format) {
  return `result-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.${format}`;
}
