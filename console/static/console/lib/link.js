// @ts-check
/**
 * The values in the link of a mail. They are in the fragment (#), which browsers do not send. They
 * are removed from the address immediately and only fill in forms, which the user has to submit.
 */

/**
 * Use the values of a link, now and whenever another link is opened in this tab.
 * @param {(brought: Record<string, string>) => void} action not called for an address without any
 */
export function onLink(action) {
  const take = () => {
    const brought = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (!Object.keys(brought).length) return;
    history.replaceState(null, "", location.pathname + location.search);
    action(brought);
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
