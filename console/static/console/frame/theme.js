// The theme that the visitor chose, else the system's; a plain script, so that it runs before the
// first paint.

(() => {
  const KEY = "zonal-theme";
  const root = document.documentElement;
  const chosen = localStorage.getItem(KEY);
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    show();
    system.addEventListener("change", show);
    button.addEventListener("click", () => {
      const wanted = isDark() ? "light" : "dark";
      // Back at what the system says, it is followed again.
      if ((wanted === "dark") === system.matches) {
        delete root.dataset.theme;
        localStorage.removeItem(KEY);
      } else {
        root.dataset.theme = wanted;
        localStorage.setItem(KEY, wanted);
      }
      show();
      document.dispatchEvent(new Event("themechange"));
    });
  });
})();
