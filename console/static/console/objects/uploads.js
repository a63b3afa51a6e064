// @ts-check
/** The uploads of this page: a few concurrently, each with its progress. */

import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { bytes, count } from "../lib/format.js";
import { onClick } from "../lib/forms.js";
import { Cancelled, Problem, sentenceOf } from "../lib/problem.js";
import { announce, tell } from "../lib/status.js";
import { AlreadyThere, Transfer, TransferFailed } from "./transfer.js";

const AT_ONCE = 2;

/** @typedef {"waiting" | "running" | "present" | "done" | "failed" | "cancelled"} State present: an object is there already */
/**
 * @typedef {object} Upload
 * @property {Transfer} transfer
 * @property {string} path bucket and key
 * @property {HTMLElement} row
 * @property {State} state
 * @property {() => Promise<void>} changed called when the object is there
 */

/** @type {Upload[]} */
let uploads = [];
let isAsking = false;

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
 * @param {() => Promise<void>} changed called when an object is there
 * @throws {Problem} where two files would become one object
 */
export function startUploads(bucket, files, changed) {
  const keys = files.map(({ key }) => key);
  const clashing = [...new Set(keys.filter((key, at) => keys.indexOf(key) !== at))];
  if (clashing.length) {
    const detail = `Several of the files would become the same object: ${clashing.join(", ")}.`;
    throw new Problem(0, { title: "Nothing is uploaded.", detail });
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
  const upload = { transfer, path: `${bucket}/${key}`, row, state: "waiting", changed };
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
    if (isOpen(upload)) stop(upload, error);
  }
  // Small files end soon: one question is about all of them.
  if (!uploads.some((each) => isOnItsWay(each) && each.transfer.isWhole)) void askToReplace();
  if (!uploads.some(isOpen)) announce(summary());
  proceed();
}

/**
 * @param {Upload} upload
 * @param {unknown} error
 */
function stop(upload, error) {
  if (error instanceof AlreadyThere) turn(upload, "present", "An object of this name is there.");
  else turn(upload, "failed", error instanceof TransferFailed ? error.message : sentenceOf(error));
}

/** Ask whether the objects that are there are replaced; about those that are found meanwhile, next. */
async function askToReplace() {
  if (isAsking) return;
  isAsking = true;
  try {
    for (let found = present(); found.length; found = present()) {
      const isAgreed = await isAgreedTo(found);
      for (const upload of found) {
        upload.transfer.isReplacing = isAgreed;
        if (isAgreed) turn(upload, "waiting", "waiting");
        else await cancel(upload, "not uploaded: what is there stays");
      }
      if (!uploads.some(isOpen)) announce(summary());
      proceed();
    }
  } finally {
    isAsking = false;
  }
}

/** @param {Upload[]} found */
async function isAgreedTo(found) {
  const what = found.length === 1 ? found[0].transfer.file.name : count(found.length, "object");
  const paths = found.map(({ path }) => path).join("\n");
  try {
    await confirm(`Replace ${what}?`, "What is there now is overwritten. This cannot be undone.", "Replace", paths);
    return true;
  } catch (error) {
    if (error instanceof Cancelled) return false;
    throw error;
  }
}

function present() {
  return uploads.filter(({ state }) => state === "present");
}

/**
 * @param {Upload} upload
 * @param {string} [said]
 */
async function cancel(upload, said = "cancelled") {
  turn(upload, "cancelled", said);
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
function isOnItsWay({ state }) {
  return state === "waiting" || state === "running";
}

/** @param {Upload} upload */
function isOpen(upload) {
  return isOnItsWay(upload) || upload.state === "present";
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
