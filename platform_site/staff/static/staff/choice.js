// @ts-check
/** Rows that were chosen before Cancel are chosen again: their ids are in the fragment. */

addEventListener("load", () => {
  const chosen = new URLSearchParams(location.hash.slice(1)).getAll("chosen");
  if (!chosen.length) return;
  for (const box of document.querySelectorAll("input.action-select")) {
    if (!(box instanceof HTMLInputElement && chosen.includes(box.value))) continue;
    box.checked = true;
    box.dispatchEvent(new Event("change", { bubbles: true }));
  }
  const query = new URLSearchParams(location.search);
  query.delete("back");
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
});
