// @ts-check
/** Rows in the clipboard: the marked ones, else what is selected, else all that are shown. */

import { byId } from "../lib/dom.js";
import { onClick } from "../lib/forms.js";
import { announce, tell } from "../lib/status.js";
import { FORMATS } from "./copies.js";
import { HEAD } from "./grid.js";

/** @typedef {import("./grid.js").Grid} Grid */

/**
 * Make the buttons of the copy menu work.
 * @param {Grid} grid
 */
export function bindCopyMenu(grid) {
  const menu = /** @type {HTMLDetailsElement} */ (byId("copy-menu"));
  menu.addEventListener("toggle", () => {
    if (menu.open) byId("copy-what").textContent = `${textOf(partOf(grid))}:`;
  });
  for (const button of menu.querySelectorAll("button")) {
    const { copiesAs = "tsv" } = button.dataset;
    onClick(button, () => {
      menu.open = false;
      return copyAs(grid, /** @type {keyof typeof FORMATS} */ (copiesAs)).catch(tell);
    });
  }
}

/**
 * @param {Grid} grid
 * @param {keyof typeof FORMATS} format
 */
async function copyAs(grid, format) {
  const part = partOf(grid);
  await navigator.clipboard.writeText(FORMATS[format].write(part.columns, await grid.whole(part.rows)));
  announce(`${textOf(part)} copied as ${FORMATS[format].name}.`);
}

/**
 * Return what is copied; one selected cell is where the keyboard is.
 * @param {Grid} grid
 */
function partOf(grid) {
  const { columns, rows, marked } = grid;
  const { top, bottom, left, right } = grid.selection();
  if (marked.size) return { columns, rows: rows.filter((_, at) => marked.has(at)), isAll: true };
  if (top === bottom && left === right) return { columns, rows, isAll: true };
  const chosen = rows.slice(top === HEAD ? 0 : top, bottom + 1).map((row) => row.slice(left, right + 1));
  return { columns: columns.slice(left, right + 1), rows: chosen, isAll: chosen.length === rows.length && left === 0 && right === columns.length - 1 };
}

/** @param {ReturnType<typeof partOf>} part */
function textOf({ columns, rows, isAll }) {
  const size = `${rows.length.toLocaleString()} row${rows.length === 1 ? "" : "s"}`;
  return isAll ? size : `${size} of ${columns.length} column${columns.length === 1 ? "" : "s"}`;
}
