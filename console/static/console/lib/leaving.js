// @ts-check
/** What ends with this page, or has an outcome that nobody would be told: the page asks before it is left. */

/** @type {Set<() => boolean>} */
const works = new Set();

/**
 * Have the page ask before it is left while something is under way.
 * @param {() => boolean} isOpen
 * @returns {() => void} ends that
 */
export function askWhile(isOpen) {
  works.add(isOpen);
  addEventListener("beforeunload", ask);
  return () => void works.delete(isOpen);
}

/** True if leaving would end something. */
export function isUnderWay() {
  return [...works].some((isOpen) => isOpen());
}

/** Let the page be left without a question: its user has answered, or is not signed in any more. */
export function letLeave() {
  works.clear();
}

/** @param {Event} event */
function ask(event) {
  if (isUnderWay()) event.preventDefault();
}
