// @ts-check
/** Tabs of a page: arrow keys move between them, and each shows its panel. */

/**
 * Make the tabs of a list work. A tab names its panel in aria-controls.
 * @param {HTMLElement} list with role=tablist
 * @param {(tab: HTMLElement) => void} [onChoose]
 */
export function bindTablist(list, onChoose) {
  list.addEventListener("click", (event) => {
    const tab = event.target instanceof Element ? event.target.closest("[role=tab]") : null;
    if (!(tab instanceof HTMLElement)) return;
    choose(list, tab);
    onChoose?.(tab);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const tabs = tabsOf(list);
    const at = tabs.findIndex((tab) => tab === document.activeElement);
    if (!step || at < 0) return;
    const next = tabs[(at + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
    event.preventDefault();
  });
}

/**
 * Mark a tab as the chosen one, and show its panel alone.
 * @param {HTMLElement} list
 * @param {HTMLElement} chosen
 */
export function choose(list, chosen) {
  for (const tab of tabsOf(list)) {
    const isChosen = tab === chosen;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
  }
  // Several tabs may share one panel, which then shows what the chosen one stands for.
  for (const tab of tabsOf(list)) panelOf(tab)?.toggleAttribute("hidden", panelOf(tab) !== panelOf(chosen));
}

/** @param {HTMLElement} list */
function tabsOf(list) {
  return /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=tab]")]);
}

/** @param {HTMLElement} tab */
function panelOf(tab) {
  return document.getElementById(tab.getAttribute("aria-controls") ?? "");
}
