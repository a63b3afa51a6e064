// @ts-check
/** The result in the clipboard: what is selected, else all rows that are shown. */

import { FORMATS } from "../grid/copies.js";
import { HEAD } from "../grid/grid.js";
import { byId } from "../lib/dom.js";
import { onClick } from "../lib/forms.js";
import { announce, tell } from "../lib/status.js";

/**
 * Make the buttons of the copy menu work.
 * @param {import("./results.js").Results} results
 */
export function bindCopyMenu(results) {
  const menu = /** @type {HTMLDetailsElement} */ (byId("copy-menu"));
  menu.addEventListener("toggle", () => {
    if (menu.open) byId("copy-what").textContent = `${textOf(partOf(results))}:`;
  });
  for (const button of menu.querySelectorAll("button")) {
    const { copiesAs = "tsv" } = button.dataset;
    onClick(button, () => {
      menu.open = false;
      return copyAs(results, /** @type {keyof typeof FORMATS} */ (copiesAs)).catch(tell);
    });
  }
}

/**
 * @param {import("./results.js").Results} results
 * @param {keyof typeof FORMATS} format
 */
async function copyAs(results, format) {
  const part = partOf(results);
  await navigator.clipboard.writeText(FORMATS[format].write(part.columns, await results.grid.whole(part.rows)));
  announce(`${textOf(part)} copied as ${FORMATS[format].name}.`);
}

/**
 * Return what is copied: a selection of several cells, else everything.
 * @param {import("./results.js").Results} results
 */
function partOf({ grid }) {
  const { top, bottom, left, right } = grid.selection();
  const { columns, rows } = grid;
  if (top === bottom && left === right) return { columns, rows, isAll: true };
  const chosen = rows.slice(top === HEAD ? 0 : top, bottom + 1).map((row) => row.slice(left, right + 1));
  return { columns: columns.slice(left, right + 1), rows: chosen, isAll: chosen.length === rows.length && left === 0 && right === columns.length - 1 };
}

/** @param {ReturnType<typeof partOf>} part */
function textOf({ columns, rows, isAll }) {
  const size = `${rows.length.toLocaleString()} row${rows.length === 1 ? "" : "s"}`;
  return isAll ? size : `${size} of ${columns.length} column${columns.length === 1 ? "" : "s"}`;
}
