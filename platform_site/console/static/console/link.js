// @ts-check
/**
 * What the link of a mail brings along. It stands behind the #, which a browser sends to nobody;
 * it is taken off the address at once, and only fills forms in: somebody has to send them.
 */

/**
 * Do something with what a link brings, now and whenever another one is opened in this tab.
 * @param {(brought: Record<string, string>) => void} deed not called for an address without any
 */
export function onLink(deed) {
  const take = () => {
    const brought = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (!Object.keys(brought).length) return;
    history.replaceState(null, "", location.pathname + location.search);
    deed(brought);
  };
  take();
  addEventListener("hashchange", take);
}

/**
 * @param {HTMLElement} field
 * @param {string} [text]
 */
export function fillIn(field, text) {
  if (text) /** @type {HTMLInputElement} */ (field).value = text;
}
