// @ts-check
/** The results of a run: one tab for each statement, a grid for rows, a tree for a plan. */

import { openDrawer } from "../grid/drawer.js";
import { Grid, HEAD } from "../grid/grid.js";
import { byId, element, show } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { announce } from "../lib/status.js";
import { bindTablist, choose } from "../lib/tablist.js";
import { planTree } from "./plan.js";

/** @typedef {import("./run.js").Answer} Answer */
/** @typedef {import("./run.js").Result} Result */

export class Results {
  constructor() {
    /** @type {Answer | null} */
    this.answer = null;
    this.note = "";
    /** @type {Result | null} */
    this.shown = null;
    this.grid = new Grid({
      label: "Rows",
      onOpen: ({ row, column }) => {
        if (this.shown && row !== HEAD) openDrawer(this.shown.columns[column], this.shown.rows[row][column]);
      },
    });
    byId("result-rows").append(this.grid.root);
    bindTablist(byId("result-tabs"), (tab) => this.#turnTo(Number(tab.dataset.index)));
    byId("result-copy").addEventListener("click", () => this.#copy());
  }

  /** Take everything of an earlier run away: nothing stale stands beside an error. */
  clear() {
    this.answer = this.shown = null;
    byId("result-tabs").replaceChildren();
    byId("result-notices").replaceChildren();
    byId("result-plan").replaceChildren();
    this.say("");
    for (const id of ["result-tabs", "result-notices", "result-rows", "result-plan", "result-actions"]) show(byId(id), false);
    this.grid.show([], []);
    show(byId("result-empty"));
  }

  /** @param {string} text */
  say(text) {
    byId("result-summary").textContent = text;
  }

  /**
   * @param {Answer} answer
   * @param {string} [note] at the end of the summary
   */
  show(answer, note = "") {
    this.clear();
    this.answer = answer;
    this.note = note;
    show(byId("result-empty"), false);
    const list = byId("result-tabs");
    list.replaceChildren(...answer.results.map((result, index) => tabOf(result, index)));
    show(list, answer.results.length > 1);
    const notices = answer.notices.map((notice) => element("li", `${notice.severity}: ${notice.message}`));
    byId("result-notices").replaceChildren(...notices);
    show(byId("result-notices"), notices.length > 0);
    // The last one is what was waited for.
    this.#turnTo(answer.results.length - 1);
  }

  /** @param {number} index */
  #turnTo(index) {
    const { answer } = this;
    const result = answer?.results[index];
    if (!answer || !result) return;
    this.shown = result;
    const tab = byId("result-tabs").children[index];
    choose(byId("result-tabs"), /** @type {HTMLElement} */ (tab));
    byId("result-panel").setAttribute("aria-labelledby", tab.id);
    const hasRows = result.columns.length > 0 && !result.plan;
    show(byId("result-rows"), hasRows);
    show(byId("result-actions"), hasRows);
    show(byId("result-plan"), Boolean(result.plan));
    if (result.plan) byId("result-plan").replaceChildren(planTree(result.plan));
    if (hasRows) this.grid.show(result.columns, result.rows);
    this.say(summaryOf(result, answer) + this.note);
  }

  async #copy() {
    if (!this.shown) return;
    const rows = await this.grid.copy();
    announce(`${count(rows, "row")} copied.`);
  }
}

/**
 * @param {Result} result
 * @param {number} index
 */
function tabOf(result, index) {
  const tab = element("button", `${index + 1} ${result.command}`);
  tab.id = `result-tab-${index}`;
  tab.dataset.index = String(index);
  tab.setAttribute("type", "button");
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", "result-panel");
  return tab;
}

/**
 * @param {Result} result
 * @param {Answer} answer
 */
function summaryOf(result, { elapsedMs }) {
  const took = `${elapsedMs < 10 ? elapsedMs.toFixed(1) : Math.round(elapsedMs).toLocaleString()} ms`;
  if (result.plan) return `Plan, ${took}`;
  if (result.columns.length === 0) {
    const changed = result.row_count ? `, ${count(result.row_count, "row")}` : "";
    return `${result.command || "Nothing to run"}${changed}, ${took}`;
  }
  const cut = result.truncated ? `. Cut: only the first ${result.rows.length.toLocaleString()} are shown` : "";
  return `${result.row_count.toLocaleString()} row${result.row_count === 1 ? "" : "s"}, ${took}${cut}`;
}
