// @ts-check
/** A whole value, beside the page. */

import { byId, fill, show } from "../lib/dom.js";
import { announce } from "../lib/status.js";
import { readableOf, textOf } from "./values.js";

/** The value that is shown, which JSON with indentation is not. @type {unknown} */
let shown = null;

/** Make the drawer's buttons work; the page has templates/console/parts/value.html. */
export function bindDrawer() {
  byId("value-copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(textOf(shown));
    announce("Copied.");
  });
  byId("value-close").addEventListener("click", () => drawer().close());
}

/**
 * Show a value.
 * @param {import("./values.js").Column} column
 * @param {unknown} value
 */
export function openDrawer(column, value) {
  shown = value;
  show(byId("value-copy"), value !== null);
  const text = readableOf(value, column.type);
  const size = value === null ? "" : ` · ${text.length.toLocaleString()} characters`;
  fill(drawer(), { name: column.name, about: `${column.type}${size}` });
  byId("value-text").textContent = text;
  byId("value-text").classList.toggle("null", value === null);
  drawer().showModal();
}

function drawer() {
  return /** @type {HTMLDialogElement} */ (byId("value"));
}
