// @ts-check
/** The rows of the open folder, folders first, in the order of their keys; and which of them are chosen. */

import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { bytes, count, moment } from "../lib/format.js";
import { address, here, nameOf } from "./place.js";

/** @typedef {{key: string, row: HTMLElement}} Entry */

/** @type {Entry[]} */
let folders = [];
/** @type {Entry[]} */
let files = [];
/** @type {Map<string, boolean>} keys; true for a folder */
const chosen = new Map();
const utf8 = new TextEncoder();
let mayChoose = false;
/** @type {HTMLElement | null} the row whose box was pressed last, from which a range begins */
let pressed = null;

/** @param {boolean} may choose */
export function bindRows(may) {
  mayChoose = may;
  const all = /** @type {HTMLInputElement} */ (byId("select-all"));
  all.addEventListener("change", () => choose(shownRows(), all.checked));
  byId("select-none").addEventListener("click", () => choose(shownRows(), false));
}

export function clearRows() {
  folders = [];
  files = [];
  chosen.clear();
  byId("file-rows").replaceChildren();
  showSelection();
}

/** Return how many rows are shown. */
export function rowCount() {
  return folders.length + files.length;
}

/** Return the keys of what is chosen. */
export function chosenKeys() {
  const keys = [...chosen.keys()];
  return { folders: keys.filter((key) => chosen.get(key)), files: keys.filter((key) => !chosen.get(key)) };
}

/**
 * Show a folder in its place, if it is not shown already.
 * @param {string} key with its slash at the end
 */
export function putFolder(key) {
  const { bucket } = here();
  const link = element("a", `${nameOf(key)}/`);
  link.setAttribute("href", address({ bucket, prefix: key }));
  rowOf(folders, key, link).classList.add("folder");
}

/**
 * Show an object in its place; what is shown of it already is brought up to date.
 * @param {{key: string, size: number | null, last_modified: string | Date}} found without a size if it was deleted
 * @param {() => void} open
 */
export function putFile({ key, size, last_modified: at }, open) {
  const button = element("button", nameOf(key));
  button.setAttribute("type", "button");
  button.addEventListener("click", open);
  fill(rowOf(files, key, button), { size: size === null ? "deleted" : bytes(size), changed: moment(new Date(at).getTime() / 1000) });
}

/**
 * Remove rows, and put the focus on the row that follows them.
 * @param {string[]} keys
 */
export function removeRows(keys) {
  const gone = new Set(keys);
  const at = [...folders, ...files].findIndex(({ key }) => gone.has(key));
  for (const { key, row } of [...folders, ...files]) {
    if (!gone.has(key)) continue;
    row.remove();
    chosen.delete(key);
  }
  [folders, files] = [folders, files].map((list) => list.filter(({ key }) => !gone.has(key)));
  showSelection();
  const left = [...folders, ...files];
  const next = left.length ? within(left[Math.min(Math.max(at, 0), left.length - 1)].row, ".name") : byId("files-title");
  next.focus();
}

/**
 * Compare keys by their UTF-8 bytes, as lists of the API are ordered.
 * @param {string} one
 * @param {string} other
 */
export function compareKeys(one, other) {
  const [left, right] = [utf8.encode(one), utf8.encode(other)];
  const at = left.findIndex((byte, index) => byte !== right[index]);
  return at < 0 ? left.length - right.length : left[at] - (right[at] ?? -1);
}

/**
 * Return the row of a key, which is made in its place if it is not there.
 * @param {Entry[]} list
 * @param {string} key
 * @param {HTMLElement} name what opens it
 */
function rowOf(list, key, name) {
  const at = placeOf(list, key);
  if (list[at]?.key === key) return list[at].row;
  const row = stamp("file-row");
  const isFolder = list === folders;
  name.classList.add("link", "name");
  within(row, "th").append(name);
  bindTick(row, key, isFolder);
  list.splice(at, 0, { key, row });
  const following = list[at + 1] ?? (isFolder ? files[0] : undefined);
  byId("file-rows").insertBefore(row, following?.row ?? null);
  return row;
}

/**
 * Return the index of a key in a list, or that of the key before which it belongs.
 * @param {Entry[]} list
 * @param {string} key
 */
function placeOf(list, key) {
  let [low, high] = [0, list.length];
  // Mostly the next one of a page.
  if (high && compareKeys(list[high - 1].key, key) < 0) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareKeys(list[middle].key, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

// --- what is chosen ---------------------------------------------------------------------------

/**
 * @param {HTMLElement} row
 * @param {string} key
 * @param {boolean} isFolder
 */
function bindTick(row, key, isFolder) {
  const tick = tickOf(row);
  row.dataset.key = key;
  row.dataset.kind = isFolder ? "folder" : "file";
  tick.setAttribute("aria-label", `Select ${nameOf(key)}${isFolder ? "/" : ""}`);
  show(within(row, ".tick"), mayChoose);
  tick.addEventListener("click", ({ shiftKey }) => {
    choose(shiftKey ? rangeTo(row) : [row], tick.checked);
    pressed = row;
  });
}

/**
 * Return the rows from the one pressed before to this one.
 * @param {HTMLElement} row
 */
function rangeTo(row) {
  const rows = shownRows();
  const [from, to] = [rows.indexOf(pressed ?? row), rows.indexOf(row)];
  return from < 0 ? [row] : rows.slice(Math.min(from, to), Math.max(from, to) + 1);
}

/**
 * @param {HTMLElement[]} rows
 * @param {boolean} isChosen
 */
function choose(rows, isChosen) {
  for (const row of rows) {
    const { key = "", kind } = row.dataset;
    tickOf(row).checked = isChosen;
    if (isChosen) chosen.set(key, kind === "folder");
    else chosen.delete(key);
  }
  showSelection();
}

function showSelection() {
  show(byId("selection"), chosen.size > 0);
  fill(byId("selection"), { selected: `${count(chosen.size, "item")} selected` });
  const all = /** @type {HTMLInputElement} */ (byId("select-all"));
  all.checked = chosen.size > 0 && chosen.size === rowCount();
  all.indeterminate = chosen.size > 0 && !all.checked;
}

function shownRows() {
  return /** @type {HTMLElement[]} */ ([...byId("file-rows").children]);
}

/** @param {HTMLElement} row */
function tickOf(row) {
  return /** @type {HTMLInputElement} */ (within(row, "input"));
}
