// @ts-check
/** What just happened, seen at the foot of the page and read out by screen readers. */

import { byId, element, show } from "./dom.js";
import { Cancelled, Problem, sentenceOf } from "./problem.js";

const SHOWN_MS = 8000;
let timer = 0;

/** @param {string} text */
export function announce(text) {
  const place = byId("status");
  clearTimeout(timer);
  place.textContent = text;
  place.classList.add("shown");
  timer = setTimeout(() => place.classList.remove("shown"), SHOWN_MS);
}

/**
 * Show an error that has no place of its own.
 * @param {unknown} error
 */
export function tell(error) {
  if (error instanceof Cancelled) return;
  announce(sentenceOf(error));
  if (!(error instanceof Problem)) throw error;
}

/** Show the page once it has what it shows, and let what was pressed before happen. */
export function ready() {
  byId("main").removeAttribute("aria-busy");
  document.dispatchEvent(new Event("pageready"));
}

/**
 * Show that the page could not be filled, and nothing else: no form of it does what it says.
 * @param {string} text
 */
export function broken(text) {
  refuse(text);
  const again = element("button", "Try again");
  again.setAttribute("type", "button");
  again.className = "link";
  again.addEventListener("click", () => location.reload());
  byId("page-problem").append(" ", again);
}

/**
 * Show why the user does not get the page, and nothing else.
 * @param {string} text
 */
export function refuse(text) {
  byId("page-problem").replaceChildren(text);
  showOnly(byId("page-problem"));
  ready();
}

/**
 * Show one part of the page alone.
 * @param {HTMLElement} part
 */
export function showOnly(part) {
  for (const each of byId("main").children) show(/** @type {HTMLElement} */ (each), each === part);
}
