// @ts-check
/** Ask for confirmation before an irreversible action. */

import { byId, show } from "./dom.js";
import { Cancelled } from "./problem.js";

/**
 * @param {string} title a question
 * @param {string} text what follows from it
 * @param {string} action what the button says
 * @param {string} [subject] what it is done to, whole
 * @returns {Promise<void>}
 * @throws {Cancelled}
 */
export async function confirm(title, text, action, subject = "") {
  const dialog = /** @type {HTMLDialogElement} */ (byId("confirm"));
  // Another question comes first, such as one of an upload.
  while (dialog.open) await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-subject").textContent = subject;
  show(byId("confirm-subject"), subject !== "");
  byId("confirm-yes").textContent = action;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done, failed) => {
    const closed = () => (dialog.returnValue === "yes" ? done() : failed(new Cancelled()));
    dialog.addEventListener("close", closed, { once: true });
  });
}
