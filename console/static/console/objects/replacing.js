// @ts-check
/** The question what becomes of a file whose object is there already. */

import { byId, fill, show } from "../lib/dom.js";
import { bytes, moment } from "../lib/format.js";
import { detailsOf } from "./details.js";
import { nameOf } from "./place.js";

/**
 * Ask for one file. A dialog that is left without an answer replaces nothing.
 * @param {import("./uploads.js").Upload} upload
 * @param {{isLast: boolean}} options true if the choice has no other file that is not there yet
 * @returns {Promise<{isReplacing: boolean, isForAll: boolean}>}
 */
export async function askToReplace({ bucket, key, file }, { isLast }) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("replace"));
  const forAll = /** @type {HTMLInputElement} */ (byId("replace-all"));
  const there = await detailsOf(bucket, key).catch(() => null);
  // It must not come in the way of another question, which is about to be answered.
  for (let open = openDialog(); open; open = openDialog()) await closed(open);
  fill(dialog, {
    name: nameOf(key),
    path: `${bucket.name}/${key}`,
    there: there ? `${bytes(there.size)}, changed ${moment(Date.parse(there.last_modified) / 1000)}` : "unknown",
    file: `${bytes(file.size)}, changed ${moment(file.lastModified / 1000)}`,
  });
  forAll.checked = false;
  show(byId("replace-others"), !isLast);
  dialog.returnValue = "skip";
  dialog.showModal();
  await closed(dialog);
  return { isReplacing: dialog.returnValue === "replace", isForAll: forAll.checked };
}

function openDialog() {
  return /** @type {HTMLDialogElement | null} */ (document.querySelector("dialog[open]"));
}

/** @param {HTMLDialogElement} dialog */
function closed(dialog) {
  return new Promise((done) => dialog.addEventListener("close", done, { once: true }));
}
