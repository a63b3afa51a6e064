// @ts-check
/** Menus of buttons (`details.menu`): closed by Escape, by a press elsewhere, and by a choice. */

/** Bind all menus of the page, also those that come later. */
export function bindMenus() {
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" ? menuOf(event.target) : null;
    if (menu) close(menu);
  });
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    const menu = menuOf(target);
    if (menu && relatedTarget instanceof Node && !menu.contains(relatedTarget)) menu.open = false;
  });
  // Before the button acts: a dialog that it opens gives the focus back to the menu.
  document.addEventListener(
    "click",
    ({ target }) => {
      const pressed = menuOf(target);
      for (const menu of document.querySelectorAll("details.menu[open]")) {
        if (menu !== pressed) /** @type {HTMLDetailsElement} */ (menu).open = false;
      }
      if (pressed && target instanceof Element && target.closest("button")) close(pressed);
    },
    true,
  );
}

/** @param {HTMLDetailsElement} menu */
function close(menu) {
  menu.open = false;
  menu.querySelector("summary")?.focus();
}

/**
 * Return the open menu around something.
 * @param {EventTarget | null} target
 * @returns {HTMLDetailsElement | null}
 */
function menuOf(target) {
  return target instanceof Element ? target.closest("details.menu[open]") : null;
}
