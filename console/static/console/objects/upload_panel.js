// @ts-check
/** What is being uploaded, in view on every part of the page: a total, and a row for each file. */

import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { bytes, count } from "../lib/format.js";
import { onClick } from "../lib/forms.js";

/** @typedef {import("./uploads.js").Upload} Upload */
/**
 * @typedef {object} Actions
 * @property {(upload: Upload) => void} cancel
 * @property {(upload: Upload) => void} retry
 * @property {() => void} cancelAll
 * @property {() => void} retryAll
 * @property {() => void} clear
 */

/** Rows for a folder with thousands of files would make the page slow. */
const LISTED = 100;
/** From the top; the latest to end is above those before. */
const ORDER = /** @type {const} */ (["running", "present", "failed", "waiting"]);
const ENDED = new Set(["done", "skipped", "cancelled"]);

/** @type {Actions} */
let actions;
/** @type {WeakMap<Upload, HTMLElement>} */
const rows = new WeakMap();

/** @param {Actions} given */
export function bindPanel(given) {
  actions = given;
  onClick(byId("uploads-cancel"), given.cancelAll);
  onClick(byId("uploads-retry"), given.retryAll);
  onClick(byId("uploads-clear"), given.clear);
}

/**
 * Show all uploads.
 * @param {Upload[]} uploads
 */
export function showPanel(uploads) {
  const list = byId("upload-list");
  const panel = byId("uploads");
  const hadFocus = panel.contains(document.activeElement);
  const focused = [...list.children].findIndex((row) => row.contains(document.activeElement));
  const listed = inOrder(uploads).slice(0, LISTED);
  const wanted = listed.map(rowOf);
  // Only rows that go elsewhere are moved: to move one takes the focus from its button.
  const turned = listed.filter((upload, at) => wanted[at].dataset.state !== upload.state);
  const stays = new Set(wanted);
  for (const upload of turned) stays.delete(rowOf(upload));
  for (const row of [...list.children]) stays.has(/** @type {HTMLElement} */ (row)) || row.remove();
  wanted.forEach((row, at) => {
    if (list.children[at] !== row) list.insertBefore(row, list.children[at] ?? null);
  });
  for (const upload of turned) paint(upload);
  fill(panel, { more: `${(uploads.length - listed.length).toLocaleString()} more` });
  show(within(panel, '[data-slot="more"]'), uploads.length > listed.length);
  show(panel, uploads.length > 0);
  show(byId("uploads-cancel"), uploads.filter(isOpen).length > 1);
  show(byId("uploads-retry"), uploads.filter(({ state }) => state === "failed").length > 1);
  show(byId("uploads-clear"), uploads.some((upload) => !isOpen(upload)));
  const summary = summaryOf(uploads);
  if (byId("uploads-title").textContent !== summary) fill(panel, { summary });
  showTotal(uploads);
  if (hadFocus && uploads.length) keepFocus(focused);
}

/**
 * Show how much of one was sent.
 * @param {Upload} upload
 * @param {Upload[]} uploads
 */
export function showProgress(upload, uploads) {
  if (rows.get(upload)?.isConnected) paint(upload);
  showTotal(uploads);
}

/** @param {Upload} upload */
export function isOpen({ state }) {
  return state === "waiting" || state === "running" || state === "present";
}

/**
 * Say what became of uploads.
 * @param {Upload[]} uploads
 */
export function summaryOf(uploads) {
  const open = uploads.filter(isOpen).length;
  if (open) return `Uploading ${count(open, "file")}`;
  const [done, ...others] = ["done", "failed", "skipped", "cancelled"].map((end) => uploads.filter(({ state }) => state === end).length);
  const said = ["failed", "skipped", "cancelled"].map((end, at) => `${others[at]} ${end}`);
  return [`${count(done, "file")} uploaded`, ...said.filter((_, at) => others[at])].join(", ");
}

/** @param {Upload[]} uploads */
function showTotal(uploads) {
  const counted = uploads.filter(({ state }) => state !== "cancelled" && state !== "skipped");
  const size = counted.reduce((sum, { file }) => sum + file.size, 0);
  const sent = counted.reduce((sum, upload) => sum + upload.sent, 0);
  const done = counted.filter(({ state }) => state === "done").length;
  const bar = /** @type {HTMLProgressElement} */ (byId("uploads-total"));
  bar.value = size ? sent / size : done / Math.max(1, counted.length);
  fill(byId("uploads"), { total: `${done.toLocaleString()} of ${count(counted.length, "file")}, ${bytes(sent)} of ${bytes(size)}` });
  show(byId("uploads-sum"), uploads.some(isOpen));
}

/**
 * Put the focus on the button of the row that has taken a row's place, else on the panel's heading.
 * @param {number} at the row that had it, -1 for none
 */
function keepFocus(at) {
  const { activeElement } = document;
  if (byId("uploads").contains(activeElement) && activeElement?.checkVisibility()) return;
  const { children } = byId("upload-list");
  const row = at < 0 ? null : children[Math.min(at, children.length - 1)];
  const button = /** @type {HTMLElement | null | undefined} */ (row?.querySelector("button:not([hidden])"));
  (button ?? byId("uploads-title")).focus();
}

/** @param {Upload[]} uploads */
function inOrder(uploads) {
  const open = ORDER.flatMap((state) => uploads.filter((upload) => upload.state === state));
  return [...open, ...uploads.filter(({ state }) => ENDED.has(state)).reverse()];
}

/** @param {Upload} upload */
function rowOf(upload) {
  const found = rows.get(upload);
  if (found) return found;
  const row = stamp("upload-row");
  const { key } = upload;
  fill(row, { name: key });
  within(row, "progress").setAttribute("aria-label", `Upload of ${key}`);
  for (const [name, action] of /** @type {const} */ ([["Cancel", actions.cancel], ["Retry", actions.retry]])) {
    const button = within(row, `[data-action="${name.toLowerCase()}"]`);
    button.setAttribute("aria-label", `${name} ${key}`);
    onClick(button, () => action(upload));
  }
  rows.set(upload, row);
  return row;
}

/** @param {Upload} upload */
function paint(upload) {
  const { state, sent, file } = upload;
  const row = rowOf(upload);
  row.dataset.state = state;
  const bar = /** @type {HTMLProgressElement} */ (within(row, "progress"));
  bar.value = state === "done" ? 1 : file.size ? sent / file.size : 0;
  show(bar, state === "running");
  fill(row, { state: textOf(upload) });
  show(within(row, '[data-action="cancel"]'), isOpen(upload) || state === "failed");
  show(within(row, '[data-action="retry"]'), state === "failed" || state === "cancelled");
}

/** @param {Upload} upload */
function textOf({ state, sent, file, refusal }) {
  const size = bytes(file.size);
  return {
    waiting: `waiting, ${size}`,
    running: `${bytes(sent)} of ${size}`,
    present: "An object of this name is there.",
    done: `done, ${size}`,
    failed: refusal,
    skipped: "not uploaded: what is there stays",
    cancelled: "cancelled",
  }[state];
}
