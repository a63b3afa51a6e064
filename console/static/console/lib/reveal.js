// @ts-check
/** Passwords, shown on request. */

/** Bind every button that shows a password. */
export function bindReveals() {
  for (const button of document.querySelectorAll("button[data-reveals]")) {
    if (!(button instanceof HTMLButtonElement)) continue;
    const input = document.getElementById(button.dataset.reveals ?? "");
    if (!(input instanceof HTMLInputElement)) continue;
    button.addEventListener("click", () => {
      const isShown = input.type === "password";
      input.type = isShown ? "text" : "password";
      button.setAttribute("aria-pressed", String(isShown));
    });
    // What is sent must be a password again: browsers offer to keep only those.
    input.form?.addEventListener("submit", () => {
      input.type = "password";
      button.setAttribute("aria-pressed", "false");
    });
  }
}
