// @ts-check
/** Ask for confirmation before an irreversible action. */

import { byId } from "./dom.js";
import { Cancelled } from "./problem.js";

/**
 * @param {string} title a question
 * @param {string} text what follows from it
 * @param {string} action what the button says
 * @returns {Promise<void>}
 * @throws {Cancelled}
 */
export function confirm(title, text, action) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("confirm"));
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = action;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done, failed) => {
    const closed = () => (dialog.returnValue === "yes" ? done() : failed(new Cancelled()));
    dialog.addEventListener("close", closed, { once: true });
  });
}
