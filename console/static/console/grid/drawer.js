// @ts-check
/** A whole value, beside the page: a long one piece by piece. */

import { byId, fill, show } from "../lib/dom.js";
import { save } from "../lib/download.js";
import { bytes } from "../lib/format.js";
import { onClick } from "../lib/forms.js";
import { announce, tell } from "../lib/status.js";
import { charactersOf, indented, isJson, LongValue, textOf } from "./values.js";

/** More characters of a text than these are shown on demand: a browser takes seconds for millions. */
const PIECE = 100_000;

/** @type {{name: string, type: string, value: import("./values.js").Value, text: string}} text: as far as it is shown */
let shown = { name: "", type: "", value: null, text: "" };

/** Make the drawer's buttons work; the page has templates/console/parts/value.html. */
export function bindDrawer() {
  onClick(byId("value-copy"), () => copy().catch(tell));
  onClick(byId("value-save"), () => download().catch(tell));
  onClick(byId("value-more"), () => more().catch(tell));
  byId("value-indent").addEventListener("click", () => indent(byId("value-indent").getAttribute("aria-pressed") !== "true"));
  byId("value-close").addEventListener("click", () => drawer().close());
}

/**
 * Show a value.
 * @param {import("./values.js").Column} column
 * @param {import("./values.js").Value} value
 */
export function openDrawer({ name, type }, value) {
  const start = textOf(value);
  shown = { name, type, value, text: value instanceof LongValue ? "" : start.slice(0, endOf(start, PIECE)) };
  const size = value instanceof LongValue ? bytes(value.bytes) : `${start.length.toLocaleString()} characters`;
  fill(drawer(), { name, about: value === null ? type : `${type} · ${size}` });
  for (const id of ["value-copy", "value-save"]) show(byId(id), value !== null);
  draw();
  drawer().showModal();
  if (value instanceof LongValue) more().catch(tell);
}

/** Show the next piece. */
async function more() {
  const of = shown;
  const next = of.value instanceof LongValue ? await of.value.piece(charactersOf(of.text), PIECE) : textOf(of.value).slice(of.text.length);
  // Another value was opened in the meantime.
  if (of !== shown) return;
  shown = { ...of, text: of.text + next.slice(0, endOf(next, PIECE)) };
  draw(next === "");
}

/** @param {boolean} [isEnd] nothing comes after what is shown */
function draw(isEnd = false) {
  const { value, text, type } = shown;
  const isAll = value === null || isEnd || (value instanceof LongValue ? new Blob([text]).size >= value.bytes : text.length === value.length);
  byId("value-text").textContent = value === null ? "NULL" : text;
  byId("value-text").classList.toggle("null", value === null);
  byId("value-part").textContent = value instanceof LongValue && text === "" ? "Loading …" : `The first ${text.length.toLocaleString()} characters are shown.`;
  show(byId("value-part"), !isAll);
  show(byId("value-more"), !isAll && text !== "");
  show(byId("value-indent"), isAll && value !== null && isJson(type));
  byId("value-indent").setAttribute("aria-pressed", "false");
}

/**
 * Show a JSON document as PostgreSQL has it, or with a line for each member.
 * @param {boolean} isIndented
 */
function indent(isIndented) {
  byId("value-indent").setAttribute("aria-pressed", String(isIndented));
  byId("value-text").textContent = isIndented ? indented(shown.text) : shown.text;
}

async function copy() {
  await navigator.clipboard.writeText(await whole());
  announce("Copied.");
}

async function download() {
  save(`${shown.name}.${isJson(shown.type) ? "json" : "txt"}`, await whole());
}

/** @returns {Promise<string>} */
async function whole() {
  const { value } = shown;
  if (!(value instanceof LongValue)) return value ?? "";
  announce(`Reading ${bytes(value.bytes)} …`);
  return value.whole();
}

/** Return where a piece ends: not within a character of two halves. @param {string} text @param {number} most */
function endOf(text, most) {
  const isCut = text.length > most && /[\ud800-\udbff]/.test(text[most - 1]);
  return isCut ? most - 1 : most;
}

function drawer() {
  return /** @type {HTMLDialogElement} */ (byId("value"));
}
