// @ts-check
/**
 * The step that a page is at, kept over a reload of its tab: telephones reload a tab while their owner
 * reads a message.
 */

/**
 * @template T
 * @param {string} name in the tab's storage; it holds no token
 */
export function keptStep(name) {
  return {
    /**
     * @param {T} step
     * @param {number} until Unix seconds
     */
    keep: (step, until) => sessionStorage.setItem(name, JSON.stringify({ step, until })),
    forget: () => sessionStorage.removeItem(name),
    /**
     * Return the step that is not over yet; null without one.
     * @returns {T | null}
     */
    present() {
      const { step, until } = JSON.parse(sessionStorage.getItem(name) ?? "{}");
      return step && until * 1000 > Date.now() ? step : null;
    },
  };
}
