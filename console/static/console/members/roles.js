// @ts-check
/** Roles and labels in forms and lists. */

import { element } from "../lib/dom.js";

/**
 * @param {HTMLFormElement} form
 * @returns {string[]}
 */
export function chosenRoles(form) {
  return new FormData(form).getAll("roles").map(String);
}

/**
 * @param {HTMLElement} form
 * @param {string[]} roles
 */
export function chooseRoles(form, roles) {
  for (const box of form.querySelectorAll('input[name="roles"]')) {
    const input = /** @type {HTMLInputElement} */ (box);
    input.checked = roles.includes(input.value);
  }
}

/** @param {string[]} words */
export function badges(words) {
  return words.map((word) => {
    const badge = element("span", word);
    badge.className = "badge";
    return badge;
  });
}
