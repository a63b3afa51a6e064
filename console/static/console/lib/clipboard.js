// @ts-check
/** The clipboard. */

import { announce } from "./status.js";

/**
 * Copy a text, and say so.
 * @param {string} text
 * @param {string} subject with its verb
 */
export async function copy(text, subject) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${subject} in the clipboard.`);
  } catch {
    announce("The browser does not allow copying. Select the text and copy it by hand.");
  }
}

/** Bind every button that copies an element's text. */
export function bindCopies() {
  for (const button of document.querySelectorAll("button[data-copies]")) {
    const source = document.getElementById(/** @type {HTMLElement} */ (button).dataset.copies ?? "");
    button.addEventListener("click", () => copy(source?.textContent ?? "", "The lines are"));
  }
}
