// @ts-check
/** The uploads of this page: a few concurrently, each with its progress. */

import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { bytes, count } from "../lib/format.js";
import { onClick } from "../lib/forms.js";
import { sentenceOf } from "../lib/problem.js";
import { announce, tell } from "../lib/status.js";
import { Transfer, TransferFailed } from "./transfer.js";

const AT_ONCE = 2;

/** @typedef {"waiting" | "running" | "done" | "failed" | "cancelled"} State */
/**
 * @typedef {object} Upload
 * @property {Transfer} transfer
 * @property {HTMLElement} row
 * @property {State} state
 * @property {() => Promise<void>} changed called when the object is there
 */

/** @type {Upload[]} */
let uploads = [];

export function bindUploads() {
  byId("uploads-clear").addEventListener("click", () => {
    uploads = uploads.filter(isOpen);
    showAll();
  });
  addEventListener("beforeunload", (event) => {
    if (uploads.some(isOpen)) event.preventDefault();
  });
}

/**
 * @param {string} bucket
 * @param {{file: File, key: string}[]} files
 * @param {Set<string>} present keys that would be replaced
 * @param {() => Promise<void>} changed called when an object is there
 * @throws {import("../lib/problem.js").Cancelled}
 */
export async function startUploads(bucket, files, present, changed) {
  const replaced = files.filter(({ key }) => present.has(key));
  if (replaced.length) {
    const what = replaced.length === 1 ? replaced[0].file.name : count(replaced.length, "object");
    await confirm(`Replace ${what}?`, "What is there now is overwritten. This cannot be undone.", "Replace");
  }
  uploads.push(...files.map(({ file, key }) => uploadOf(bucket, key, file, changed)));
  showAll();
  proceed();
}

/**
 * @param {string} bucket
 * @param {string} key
 * @param {File} file
 * @param {() => Promise<void>} changed
 * @returns {Upload}
 */
function uploadOf(bucket, key, file, changed) {
  const row = stamp("upload-row");
  const bar = /** @type {HTMLProgressElement} */ (within(row, "progress"));
  bar.setAttribute("aria-label", `Upload of ${file.name}`);
  const transfer = new Transfer(bucket, key, file, (sent) => {
    bar.value = file.size ? sent / file.size : 1;
    fill(row, { state: `${bytes(sent)} of ${bytes(file.size)}` });
  });
  /** @type {Upload} */
  const upload = { transfer, row, state: "waiting", changed };
  fill(row, { name: key, state: `waiting, ${bytes(file.size)}` });
  within(row, '[data-action="cancel"]').addEventListener("click", () => void cancel(upload));
  onClick(within(row, '[data-action="retry"]'), () => {
    turn(upload, "waiting", "waiting");
    proceed();
  });
  return upload;
}

/** Run what waits, as far as there is room. */
function proceed() {
  const room = AT_ONCE - uploads.filter(({ state }) => state === "running").length;
  for (const upload of uploads.filter(({ state }) => state === "waiting").slice(0, Math.max(0, room))) {
    void run(upload);
  }
}

/** @param {Upload} upload */
async function run(upload) {
  turn(upload, "running", "starting");
  try {
    await upload.transfer.send();
    /** @type {HTMLProgressElement} */ (within(upload.row, "progress")).value = 1;
    turn(upload, "done", `done, ${bytes(upload.transfer.file.size)}`);
    await upload.changed();
  } catch (error) {
    // The button has said so already.
    if (isOpen(upload)) turn(upload, "failed", error instanceof TransferFailed ? error.message : sentenceOf(error));
  }
  if (!uploads.some(isOpen)) announce(summary());
  proceed();
}

/** @param {Upload} upload */
async function cancel(upload) {
  turn(upload, "cancelled", "cancelled");
  try {
    await upload.transfer.cancel();
  } catch (error) {
    tell(error);
  }
}

/**
 * @param {Upload} upload
 * @param {State} state
 * @param {string} text
 */
function turn(upload, state, text) {
  upload.state = state;
  upload.row.dataset.state = state;
  fill(upload.row, { state: text });
  show(within(upload.row, '[data-action="cancel"]'), isOpen(upload) || state === "failed");
  show(within(upload.row, '[data-action="retry"]'), state === "failed");
  showAll();
}

/** @param {Upload} upload */
function isOpen({ state }) {
  return state === "waiting" || state === "running";
}

function showAll() {
  const list = byId("upload-list");
  // Rows that stay are left alone: moving one would take the focus from its button.
  for (const row of [...list.children]) {
    if (!uploads.some((upload) => upload.row === row)) row.remove();
  }
  for (const { row } of uploads) {
    if (row.parentElement !== list) list.append(row);
  }
  show(byId("uploads"), uploads.length > 0);
  show(byId("uploads-clear"), uploads.some((upload) => !isOpen(upload)));
  fill(byId("uploads"), { summary: summary() });
}

function summary() {
  const open = uploads.filter(isOpen).length;
  if (open) return `Uploading ${count(open, "file")}`;
  const failed = uploads.filter(({ state }) => state === "failed").length;
  const done = uploads.filter(({ state }) => state === "done").length;
  return failed ? `${count(done, "file")} uploaded, ${failed} failed` : `${count(done, "file")} uploaded`;
}
