// @ts-check
/** Charts begin at zero; the dashboard is loaded again once a minute, while it is looked at. */

// Before unfold draws them, once all is loaded. Without it a small change looks like a large one.
/** @type {any} */ (window).Chart.defaults.scales.linear.beginAtZero = true;

const note = /** @type {HTMLElement} */ (document.querySelector("[data-reload]"));

setInterval(() => {
  if (document.visibilityState === "visible") location.reload();
}, Number(note.dataset.reload) * 1000);
