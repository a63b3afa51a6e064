// @ts-check
/** The rows of one table: filters, order, pages, and which columns are seen. */

import { Grid, HEAD } from "../grid/grid.js";
import { LongValue } from "../grid/values.js";
import { query } from "../lib/api.js";
import { byId, show } from "../lib/dom.js";
import { attempt, onPress } from "../lib/forms.js";
import { LONG_BYTES, rowOf } from "../lib/long_values.js";
import { count } from "../lib/format.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { wholeTable } from "./place.js";
import { shapeOf, shortType } from "./shape.js";
import { browse, countRows, MOST_SKIPPED, readPiece, sourcesOf } from "./statements.js";

const PAGE_ROWS = 100;
/** A page, and what is tried where even the beginnings of its values, and its keys, are too long. */
const PAGES = [
  { rows: PAGE_ROWS, most: LONG_BYTES },
  { rows: 10, most: 256 },
  { rows: 1, most: 0 },
];

/** @typedef {import("./statements.js").Cursor} Cursor */
/** @typedef {import("./shape.js").Shape} Shape */
/** @typedef {import("../grid/values.js").Value} Value */
/** @typedef {import("./place.js").View} View */
/**
 * @typedef {object} Options
 * @property {(row: number, column: number, typed?: string) => void} onOpen a cell was opened, the column as the table counts; typed: the key that did it
 * @property {(rows: Set<number>) => void} onSelect rows were marked or unmarked
 * @property {(isStep: boolean) => void} onView the user changed the view; isStep: to come back to
 * @property {() => void} onShow other rows are shown
 */

export class Rows {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    /** @type {Shape | null} */
    this.shape = null;
    /** @type {View} */
    this.view = wholeTable();
    /** Where pages begin, by the number of their first row. @type {Map<number, Cursor>} */
    this.starts = new Map();
    /** @type {(string | null)[]} the rows' versions */
    this.versions = [];
    /** @type {Value[][]} the rows with all columns */
    this.values = [];
    /** @type {number[]} the columns that are shown, by their place in the table */
    this.shown = [];
    /** What is drawn; the same page again stays scrolled to where it is. */
    this.page = "";
    this.grid = new Grid({
      label: "Rows",
      onOpen: ({ row, column }) => (row === HEAD ? this.#sortBy(this.shown[column]) : options.onOpen(row, this.shown[column])),
      onType: ({ row, column }, typed) => options.onOpen(row, this.shown[column], typed),
      onSelect: options.onSelect,
    });
    byId("rows-grid").append(this.grid.root);
    byId("rows-next").addEventListener("click", () => this.#turn(this.view.first + this.values.length));
    byId("rows-previous").addEventListener("click", () => this.#turn(Math.max(1, this.view.first - PAGE_ROWS)));
    onPress(byId("rows-count"), byId("rows"), () => this.#count());
  }

  /**
   * Show a table, or another part of it.
   * @param {import("./shape.js").Table} table
   * @param {View} view
   */
  async open(table, view) {
    if (this.shape?.table !== table || !isSameOrder(view, this.view)) {
      this.starts.clear();
      byId("rows-total").textContent = "";
    }
    const isOther = this.shape?.table.schema !== table.schema || this.shape.table.name !== table.name;
    this.shape = shapeOf(table);
    this.view = view;
    if (isOther) this.#fill(this.shape, [], false);
    await this.load();
  }

  /** @param {Partial<View>} changes of the user; other rows are read from the first one on */
  async change(changes) {
    this.view = { ...this.view, first: 1, ...changes };
    this.starts.clear();
    byId("rows-total").textContent = "";
    this.options.onView(true);
    await this.load();
  }

  /** @param {string[]} names of columns that are not shown */
  hide(names) {
    this.view = { ...this.view, hidden: names };
    this.options.onView(false);
    this.#draw();
  }

  /** Read the present page; an error leaves no old rows beside its sentence. */
  async load() {
    const { shape, view } = this;
    if (!shape) return;
    await attempt(byId("rows"), async () => {
      try {
        const { first, filters, sort } = view;
        if (!filters) throw new Problem(0, { title: "The filter in this address cannot be read: a part of the link is missing or was changed." });
        const after = this.starts.get(first) ?? null;
        const skipped = after ? 0 : first - 1;
        const { rows, hasNext } = await readPage(shape, { filters, sort, after, skipped });
        // Something else was opened in the meantime.
        if (this.shape !== shape || this.view.first !== first || !isSameOrder(view, this.view)) return;
        this.#fill(shape, rows, hasNext);
      } catch (error) {
        if (this.shape === shape) this.#fill(shape, [], false);
        throw error;
      }
    });
  }

  /**
   * Return a row's primary key.
   * @param {number} row
   */
  keyOf(row) {
    return /** @type {(string | null)[]} */ (this.shape?.key.map((name) => this.valueOf(row, name)) ?? []);
  }

  /**
   * @param {number} row
   * @param {string} name of a column
   * @returns {Value}
   */
  valueOf(row, name) {
    const at = this.shape?.columns.findIndex((column) => column.name === name) ?? 0;
    return this.values[row][at];
  }

  /**
   * Show what a row is now.
   * @param {number} row
   * @param {(string | null)[]} values its version first
   */
  replace(row, [version, ...values]) {
    const { shape } = this;
    if (!shape) return;
    this.versions[row] = version;
    this.values[row] = this.#valuesOf(shape, values, row);
    this.grid.replace(row, this.#seen(this.values[row]));
  }

  /**
   * @param {Shape} shape
   * @param {any[][]} rows
   * @param {boolean} hasNext
   */
  #fill(shape, rows, hasNext) {
    const { first, filters } = this.view;
    this.versions = rows.map((row) => row[0]);
    this.values = rows.map((row, at) => this.#valuesOf(shape, row.slice(1), at));
    const last = first + rows.length - 1;
    if (shape.paging !== "offset" && rows.length) this.starts.set(last + 1, this.#cursor());
    this.#draw();
    const none = first > 1 ? `No rows from ${first.toLocaleString()} on.` : filters?.length ? "No row fits." : "No rows.";
    const range = rows.length ? `Rows ${first.toLocaleString()} to ${last.toLocaleString()}` : none;
    byId("rows-range").textContent = range;
    const isFar = shape.paging === "offset" && last >= MOST_SKIPPED;
    /** @type {HTMLButtonElement} */ (byId("rows-next")).disabled = !hasNext || isFar || rows.length === 0;
    /** @type {HTMLButtonElement} */ (byId("rows-previous")).disabled = first === 1;
    show(byId("rows-far"), isFar && hasNext);
  }

  /** Show the rows with the columns that are not hidden; a table whose columns are all hidden with all. */
  #draw() {
    const { shape } = this;
    if (!shape) return;
    const { first, filters, sort, hidden } = this.view;
    const all = shape.columns.map((_, at) => at);
    this.shown = all.filter((at) => !hidden.includes(shape.columns[at].name));
    if (!this.shown.length) this.shown = all;
    const columns = this.shown.map((at) => {
      const { name, type, declared } = shape.columns[at];
      const mark = shape.key.includes(name) ? "key" : "";
      return { name, type: shortType(type), declared: shortType(declared), mark, sort: sort?.column === name ? directionOf(sort) : undefined };
    });
    const page = JSON.stringify([shape.table.schema, shape.table.name, first, filters, sort]);
    const { active, root } = this.grid;
    const top = root.scrollTop;
    this.grid.show(columns, this.values.map((row) => this.#seen(row)), first);
    if (page === this.page && this.values.length) {
      root.scrollTop = top;
      this.grid.go({ row: Math.min(active.row, this.values.length - 1), column: Math.min(active.column, columns.length - 1) });
    }
    this.page = page;
    this.options.onSelect(this.grid.marked);
    this.options.onShow();
  }

  /**
   * Return the values of a row, of which long ones are read on demand.
   * @param {Shape} shape
   * @param {(string | null)[]} texts as they were selected
   * @param {number} row
   */
  #valuesOf(shape, texts, row) {
    const { filters, sort, first } = this.view;
    const long = (/** @type {string} */ start, /** @type {number} */ size, /** @type {number} */ column) =>
      new LongValue(start, size, async (from, most) => {
        const place = { key: this.keyOf(row), version, view: { filters: filters ?? [], sort }, skipped: first + row - 1 };
        const answer = await query("/v1/sql", { ...readPiece(shape, column, place, from, most), rows: "arrays", values: "text" });
        const [now, piece, beginning] = answer.rows[0] ?? [];
        if (piece === undefined || now !== version || !(beginning ?? "").startsWith(start)) {
          throw new Problem(409, { title: "This row is another one now: someone changed or deleted it. Refresh to see it." });
        }
        return piece ?? "";
      });
    const version = this.versions[row];
    return rowOf(sourcesOf(shape), texts, long);
  }

  /** @param {Value[]} row @returns {Value[]} the values of the columns that are shown */
  #seen(row) {
    return this.shown.map((at) => row[at]);
  }

  /** @param {number} column */
  #sortBy(column) {
    const { sort } = this.view;
    const { name, declared, isOrdered } = /** @type {Shape} */ (this.shape).columns[column];
    if (!isOrdered && sort?.column === name) this.change({ sort: null });
    else if (!isOrdered) announce(`PostgreSQL has no order for values of the type ${shortType(declared)}.`);
    else if (sort?.column !== name) this.change({ sort: { column: name, descending: false } });
    else this.change({ sort: sort.descending ? null : { column: name, descending: true } });
  }

  /** @param {number} first */
  #turn(first) {
    this.view = { ...this.view, first };
    this.options.onView(true);
    this.load();
  }

  /** @returns {Cursor} the last row of the page */
  #cursor() {
    const row = this.values.length - 1;
    const { sort } = this.view;
    const hasColumn = this.shape?.columns.some(({ name }) => name === sort?.column);
    const key = this.shape?.paging === "place" ? [this.versions[row]] : this.keyOf(row);
    return { key, sort: sort && hasColumn ? this.valueOf(row, sort.column) : null };
  }

  async #count() {
    const { shape } = this;
    const { filters } = this.view;
    if (!shape || !filters) return;
    const answer = await query("/v1/sql", { ...countRows(shape, filters), rows: "arrays" });
    if (this.shape !== shape || this.view.filters !== filters) return;
    byId("rows-total").textContent = `${count(Number(answer.rows[0][0]), "row")}${filters.length ? " fit" : " in all"}`;
  }
}

/**
 * Read a page of rows: fewer of them, and less of each value, where they are too long for an answer.
 * @param {Shape} shape
 * @param {{filters: import("./statements.js").Filter[], sort: import("./statements.js").Sort | null, after: Cursor | null, skipped: number}} wanted
 * @returns {Promise<{rows: (string | null)[][], hasNext: boolean}>}
 */
async function readPage(shape, wanted) {
  for (const { rows, most } of PAGES) {
    try {
      // One more than a page: whether there is a next one.
      const answer = await query("/v1/sql", { ...browse(shape, { ...wanted, limit: rows + 1, most }), rows: "arrays", values: "text" });
      if (answer.rows.length || !answer.truncated) return { rows: answer.rows.slice(0, rows), hasNext: answer.rows.length > rows || answer.truncated };
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "result_too_large" || rows === 1) throw error;
    }
  }
  throw new Problem(413, { title: "The next row is too long to be shown: its key alone is longer than an answer." });
}

/**
 * @param {import("./statements.js").Sort} sort
 * @returns {"ascending" | "descending"}
 */
function directionOf({ descending }) {
  return descending ? "descending" : "ascending";
}

/**
 * True if two views have the same rows in the same order.
 * @param {View} one
 * @param {View} other
 */
function isSameOrder(one, other) {
  return JSON.stringify([one.filters, one.sort]) === JSON.stringify([other.filters, other.sort]);
}
