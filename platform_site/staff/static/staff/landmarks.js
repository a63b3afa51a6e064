// @ts-check
/** What unfold's pages lack for keys and assistive technology: a main part, names, and buttons. */

// Of the icons that are a button's only content.
/** @type {Record<string, string>} */
const NAMES = { close: "Close the menu", dock_to_right: "Menu", more_horiz: "Actions" };

addEventListener("load", () => {
  (document.getElementById("main") ?? document.getElementById("page"))?.setAttribute("role", "main");
  document.querySelectorAll(".simplebar-content-wrapper").forEach((each, index) => {
    const name = each.closest("#nav-sidebar-apps") ? "Entries" : `Content ${index + 1}`;
    each.setAttribute("aria-label", name);
  });
  for (const each of document.querySelectorAll("[x-on\\:click]:not(a[href], button, input)")) {
    if (each instanceof HTMLElement && each.id !== "changelist-filter-close") makeButton(each);
  }
  followFilters();
});

/**
 * Let keys press what unfold made for the mouse alone.
 * @param {HTMLElement} each
 */
function makeButton(each) {
  each.setAttribute("role", "button");
  each.tabIndex = 0;
  const name = NAMES[each.textContent?.trim() ?? ""];
  if (name) each.setAttribute("aria-label", name);
  each.addEventListener("keydown", (event) => {
    if (event.target !== each || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    each.click();
  });
}

/** The focus goes into the filters as they open, and back to their button as they close. */
function followFilters() {
  const sheet = document.getElementById("changelist-filter");
  sheet?.querySelectorAll("h3").forEach((each) => each.setAttribute("aria-level", "2"));
  const button = document.querySelector('#changelist [role="button"]');
  if (!sheet || !(button instanceof HTMLElement)) return;
  const follow = () => {
    const first = sheet.querySelector("input:not([type=hidden]), select, a[href]");
    const wanted = sheet.style.display === "none" ? button : first;
    if (wanted instanceof HTMLElement) wanted.focus();
  };
  new MutationObserver(follow).observe(sheet, { attributeFilter: ["style"] });
}
