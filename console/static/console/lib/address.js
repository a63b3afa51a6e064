// @ts-check
/** What a page is set to, in its address: a reload, Back and a link show the same again. */

/** @returns {Record<string, string>} */
export function readAddress() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/**
 * Write what the page is set to into its address; Back then leads to what was shown before.
 * @param {Record<string, string>} values '' is left out
 * @param {{isStep?: boolean}} [options] isStep: false for what is still being typed
 */
export function writeAddress(values, { isStep = true } = {}) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  const next = location.pathname + (`${query}` && `?${query}`);
  if (next === location.pathname + location.search) return;
  if (isStep) history.pushState(null, "", next);
  else history.replaceState(null, "", next);
}
