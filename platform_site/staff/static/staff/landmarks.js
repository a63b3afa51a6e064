// @ts-check
/** What unfold's pages lack for assistive technology: a main part, and names of what scrolls. */

addEventListener("load", () => {
  (document.getElementById("main") ?? document.getElementById("page"))?.setAttribute("role", "main");
  document.querySelectorAll(".simplebar-content-wrapper").forEach((each, index) => {
    const name = each.closest("#nav-sidebar-apps") ? "Entries" : `Content ${index + 1}`;
    each.setAttribute("aria-label", name);
  });
});
