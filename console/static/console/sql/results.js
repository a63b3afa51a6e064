// @ts-check
/** The results of a run: one tab for each statement, a grid for rows, a tree for a plan. */

import { openDrawer } from "../grid/drawer.js";
import { Grid, HEAD } from "../grid/grid.js";
import { byId, element, show } from "../lib/dom.js";
import { bindTablist, choose } from "../lib/tablist.js";
import { planTree } from "./plan.js";
import { nextSort, sorted } from "./sort.js";

/** @typedef {import("./run.js").Answer} Answer */
/** @typedef {import("./run.js").Result} Result */
/** @typedef {import("./sort.js").Sort} Sort */

export class Results {
  constructor() {
    /** @type {Answer | null} */
    this.answer = null;
    this.note = "";
    /** @type {Result | null} */
    this.shown = null;
    /** Of the rows that are shown. @type {Sort | null} */
    this.sort = null;
    this.grid = new Grid({
      label: "Rows",
      onOpen: ({ row, column }) => {
        if (row === HEAD) this.#sortBy(column);
        else if (this.shown) openDrawer(this.shown.columns[column], this.grid.rows[row][column]);
      },
    });
    byId("result-rows").append(this.grid.root);
    bindTablist(byId("result-tabs"), (tab) => this.#turnTo(Number(tab.dataset.index)));
  }

  /** Take everything of an earlier run away: nothing stale is beside an error. */
  clear() {
    this.answer = this.shown = null;
    byId("result-tabs").replaceChildren();
    byId("result-notices").replaceChildren();
    byId("result-plan").replaceChildren();
    this.say("");
    for (const id of ["result-tabs", "result-notices", "result-rows", "result-plan", "result-actions", "read-in-part"]) show(byId(id), false);
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
    this.showNotices(answer.notices);
    // The last one is what was waited for.
    this.#turnTo(answer.results.length - 1);
  }

  /** @param {import("./run.js").Notice[]} notices */
  showNotices(notices) {
    byId("result-notices").replaceChildren(...notices.map((notice) => element("li", noticeOf(notice))));
    show(byId("result-notices"), notices.length > 0);
  }

  /** Bring the results into sight, where the page is longer than the window. */
  reveal() {
    const place = byId("results");
    const { top, bottom } = place.getBoundingClientRect();
    if (top < 0 || bottom > innerHeight) place.scrollIntoView({ block: "start" });
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
    this.sort = null;
    if (hasRows) this.grid.show(result.columns, result.rows);
    this.say(summaryOf(result, answer) + this.note);
  }

  /** Sort the rows that are shown by a column; up, down, and as they came. @param {number} column */
  #sortBy(column) {
    const { answer, grid, shown } = this;
    if (!answer || !shown) return;
    this.sort = nextSort(this.sort, column);
    const { sort } = this;
    const columns = shown.columns.map((one, at) => (at === sort?.column ? { ...one, sort: sort.direction } : one));
    grid.show(columns, sort ? sorted(shown, sort) : shown.rows);
    // Where the press was, the next one is.
    grid.go({ row: HEAD, column });
    const note = sort && shown.truncated ? ". Only these are sorted: the database can sort all, by ORDER BY" : "";
    this.say(summaryOf(shown, answer) + this.note + note);
  }
}

/** @param {import("./run.js").Notice} notice */
function noticeOf({ severity, message, detail, hint, line, column }) {
  const place = line ? `Line ${line}, column ${column}: ` : "";
  return [`${severity}: ${place}${message}`, detail, hint && `Hint: ${hint}`].filter(Boolean).join("\n");
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
    const changed = result.row_count ? `, ${rowsOf(result.row_count)}` : "";
    return `${result.command || "Nothing to run"}${changed}, ${took}`;
  }
  const cut = result.truncated ? `. Cut: only the first ${result.rows.length.toLocaleString()} are shown` : "";
  return `${rowsOf(result.row_count)}, ${took}${cut}`;
}

/** @param {number} number */
function rowsOf(number) {
  return `${number.toLocaleString()} row${number === 1 ? "" : "s"}`;
}
