// @ts-check
/** The uploads of this page: a few concurrently. None replaces an object without an answer of the user. */

import { askWhile } from "../lib/leaving.js";
import { Problem, sentenceOf } from "../lib/problem.js";
import { announce, tell } from "../lib/status.js";
import { askToReplace } from "./replacing.js";
import { AlreadyThere, Transfer, TransferFailed } from "./transfer.js";
import { bindPanel, isOpen, showPanel, showProgress, summaryOf } from "./upload_panel.js";

const AT_ONCE = 2;

/** @typedef {"waiting" | "running" | "present" | "done" | "failed" | "skipped" | "cancelled"} State present: an object is there already */
/**
 * What the user chose in one go. isReplacing: what was answered for all of it, if anything.
 * @typedef {{isReplacing?: boolean}} Choice
 */
/**
 * @typedef {object} Upload
 * @property {import("./deletion.js").Bucket} bucket
 * @property {string} key
 * @property {File} file
 * @property {Choice} choice
 * @property {Transfer} transfer
 * @property {State} state
 * @property {number} sent bytes
 * @property {string} refusal of one that failed
 * @property {(key: string, size: number) => void} stored called when the object is there
 */

/** @type {Upload[]} */
let uploads = [];
let isAsking = false;

export function bindUploads() {
  bindPanel({
    cancel: (upload) => cancel([upload]),
    retry: (upload) => retry([upload]),
    cancelAll: () => cancel(uploads.filter(isOpen)),
    retryAll: () => retry(uploads.filter(({ state }) => state === "failed")),
    clear: () => {
      uploads = uploads.filter(isOpen);
      showPanel(uploads);
    },
  });
  askWhile(() => uploads.some(isOpen));
}

/**
 * @param {Upload["bucket"]} bucket
 * @param {{file: File, key: string}[]} files each with another key
 * @param {Upload["stored"]} stored called when an object is there
 */
export function startUploads(bucket, files, stored) {
  // The total is that of what runs together.
  if (!uploads.some(isOpen)) uploads = uploads.filter(({ state }) => state === "failed");
  const choice = {};
  for (const { key, file } of files) {
    const upload = /** @type {Upload} */ ({ bucket, key, file, choice, state: "waiting", sent: 0, refusal: "", stored });
    upload.transfer = transferOf(upload);
    uploads.push(upload);
  }
  showPanel(uploads);
  proceed();
}

/** @param {Upload} upload */
function transferOf(upload) {
  return new Transfer(upload.bucket, upload.key, upload.file, (sent) => {
    upload.sent = sent;
    showProgress(upload, uploads);
  });
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
  const { transfer, key, file } = upload;
  turn([upload], "running");
  try {
    await transfer.send();
    upload.stored(key, file.size);
    if (upload.transfer !== transfer) return;
    upload.sent = file.size;
    turn([upload], "done");
  } catch (error) {
    // The button has said so already.
    if (isOpen(upload) && upload.transfer === transfer) stop(upload, error);
  }
  end();
}

/**
 * @param {Upload} upload
 * @param {unknown} error
 */
function stop(upload, error) {
  upload.sent = 0;
  if (error instanceof AlreadyThere) {
    turn([upload], "present");
    void askAboutPresent();
    return;
  }
  upload.refusal = error instanceof TransferFailed ? error.message : sentenceOf(error);
  turn([upload], "failed");
  if (!(error instanceof TransferFailed || error instanceof Problem)) reportError(error);
}

/** Go on with what waits; say how it went when nothing does. */
function end() {
  if (uploads.length && !uploads.some(isOpen)) announce(summaryOf(uploads));
  proceed();
}

/** Ask about one object after the other that is there, also about those that are found meanwhile. */
async function askAboutPresent() {
  if (isAsking) return;
  isAsking = true;
  try {
    for (let upload = present(); upload; upload = present()) {
      const { choice } = upload;
      const isLast = !uploads.some((other) => other !== upload && other.choice === choice && isOpen(other));
      const answer = choice.isReplacing === undefined ? await askToReplace(upload, { isLast }) : { ...choice, isForAll: true };
      if (answer.isForAll) choice.isReplacing = answer.isReplacing;
      if (upload.state !== "present") continue;
      upload.transfer.isReplacing = Boolean(answer.isReplacing);
      if (answer.isReplacing) turn([upload], "waiting");
      else cancel([upload], "skipped");
      end();
    }
  } finally {
    isAsking = false;
  }
}

function present() {
  return uploads.find(({ state }) => state === "present");
}

/**
 * @param {Upload[]} stopped
 * @param {State} [state]
 */
function cancel(stopped, state = "cancelled") {
  for (const upload of stopped) upload.sent = 0;
  turn(stopped, state);
  for (const { transfer } of stopped) transfer.cancel().catch(tell);
}

/** @param {Upload[]} ended those that failed, or were cancelled */
function retry(ended) {
  for (const upload of ended) {
    // Of one that failed, the parts that were sent are there.
    if (upload.state === "cancelled") upload.transfer = transferOf(upload);
  }
  turn(ended, "waiting");
  proceed();
}

/**
 * @param {Upload[]} some
 * @param {State} state
 */
function turn(some, state) {
  for (const upload of some) upload.state = state;
  showPanel(uploads);
}
