// What is pressed in the frame before the page's module is ready happens once it is, instead of
// never; the rest of the page is not seen before. A plain script in the head, so that it listens
// before there is anything to press.

(() => {
  const root = document.documentElement;
  /** @type {HTMLButtonElement | null} the last one pressed, as the visitor means that one */
  let pressed = null;

  const isWaiting = () => document.readyState === "loading" || document.querySelector("main[aria-busy]") !== null;
  // The browser itself opens the navigation; a dialog is open because a module asks by it.
  const isAllowed = (button) => button.matches("#theme, [popovertarget], dialog[open] *");

  const hold = (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (!button || !event.isTrusted || !isWaiting() || isAllowed(button)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    pressed = button;
    root.dataset.pressed = "";
  };

  document.addEventListener("click", hold, true);
  document.addEventListener("pageready", () => {
    const button = pressed;
    pressed = null;
    delete root.dataset.pressed;
    button?.click();
  });
})();
