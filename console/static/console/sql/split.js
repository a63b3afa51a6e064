// @ts-check
/** The border between the editor and its results, which the mouse, a finger or the arrow keys move. */

import { byId } from "../lib/dom.js";

const STEP_PX = 24;
/** What stays of the editor, and in a window of one height, of the results. */
const LEAST_PX = 96;
const KEPT = "zonal-sql-split";

export function bindSplit() {
  const split = byId("split");
  const editor = byId("editor");
  const desk = /** @type {HTMLElement} */ (editor.parentElement);

  const most = () => Math.max(LEAST_PX, Math.max(desk.clientHeight, innerHeight) - 2 * LEAST_PX);

  /** @param {number} height */
  const set = (height) => {
    const to = Math.round(Math.max(LEAST_PX, Math.min(most(), height)));
    editor.style.setProperty("--height", `${to}px`);
    split.setAttribute("aria-valuemin", String(LEAST_PX));
    split.setAttribute("aria-valuemax", String(most()));
    split.setAttribute("aria-valuenow", String(to));
    split.setAttribute("aria-valuetext", `The editor is ${to} pixels high.`);
  };

  /** @param {number} height */
  const keep = (height) => {
    set(height);
    localStorage.setItem(KEPT, String(editor.offsetHeight));
  };

  split.addEventListener("keydown", (event) => {
    const now = editor.offsetHeight;
    const to = { ArrowUp: now - STEP_PX, ArrowDown: now + STEP_PX, Home: LEAST_PX, End: most() }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    keep(to);
  });
  split.addEventListener("pointerdown", (event) => {
    const [from, before] = [event.clientY, editor.offsetHeight];
    split.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ to) => keep(before + to.clientY - from);
    split.addEventListener("pointermove", move);
    split.addEventListener("lostpointercapture", () => split.removeEventListener("pointermove", move), { once: true });
    event.preventDefault();
    split.focus();
  });
  split.addEventListener("dblclick", () => {
    localStorage.removeItem(KEPT);
    editor.style.removeProperty("--height");
    set(editor.offsetHeight);
  });
  const kept = Number(localStorage.getItem(KEPT));
  set(kept || editor.offsetHeight);
}
