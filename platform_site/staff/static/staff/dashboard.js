// @ts-check
/** Reload the dashboard once a minute, while it is looked at. */

const note = /** @type {HTMLElement} */ (document.querySelector("[data-reload]"));

setInterval(() => {
  if (document.visibilityState === "visible") location.reload();
}, Number(note.dataset.reload) * 1000);
