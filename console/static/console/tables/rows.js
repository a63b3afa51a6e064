// @ts-check
/** The rows of one table: filters, order, pages. */

import { Grid, HEAD } from "../grid/grid.js";
import { post } from "../lib/api.js";
import { byId, show } from "../lib/dom.js";
import { attempt } from "../lib/forms.js";
import { count } from "../lib/format.js";
import { shapeOf, shortType } from "./shape.js";
import { browse, countRows, MOST_SKIPPED } from "./statements.js";

const PAGE_ROWS = 100;

/** @typedef {import("./statements.js").Filter} Filter */
/** @typedef {import("./statements.js").Cursor} Cursor */
/** @typedef {import("./shape.js").Shape} Shape */

export class Rows {
  /**
   * @param {(row: number, column: number) => void} onOpen a cell was opened
   * @param {(rows: Set<number>) => void} onSelect
   */
  constructor(onOpen, onSelect) {
    /** @type {Shape | null} */
    this.shape = null;
    /** @type {Filter[]} */
    this.filters = [];
    /** @type {import("./statements.js").Sort | null} */
    this.sort = null;
    /** @type {(Cursor | null)[]} of the pages up to the present one */
    this.pages = [null];
    /** @type {(string | null)[]} the rows' versions */
    this.versions = [];
    this.grid = new Grid({
      label: "Rows",
      onOpen: ({ row, column }) => (row === HEAD ? this.#sortBy(column) : onOpen(row, column)),
      onSelect,
    });
    byId("rows-grid").append(this.grid.root);
    byId("rows-next").addEventListener("click", () => this.#turn(1));
    byId("rows-previous").addEventListener("click", () => this.#turn(-1));
    byId("rows-count").addEventListener("click", () => this.#count());
  }

  /** @param {import("./shape.js").Table} table */
  async open(table) {
    this.shape = shapeOf(table);
    this.filters = [];
    this.sort = null;
    await this.restart();
  }

  /** Read the first page. */
  async restart() {
    this.pages = [null];
    await this.load();
  }

  /** Read the present page; an error leaves no old rows beside its sentence. */
  async load() {
    const { shape } = this;
    if (!shape) return;
    await attempt(byId("rows"), async () => {
      this.#fill(shape, [], false, false);
      const skipped = (this.pages.length - 1) * PAGE_ROWS;
      const after = this.pages[this.pages.length - 1];
      // One more than a page: whether there is a next one.
      const statement = browse(shape, { ...this, after, skipped, limit: PAGE_ROWS + 1 });
      const answer = await post("/v1/sql", { ...statement, rows: "arrays" });
      // Another table was opened in the meantime.
      if (this.shape !== shape) return;
      const hasNext = answer.rows.length > PAGE_ROWS || answer.truncated;
      this.#fill(shape, answer.rows.slice(0, PAGE_ROWS), hasNext, answer.truncated);
    });
  }

  /**
   * Return a row's primary key.
   * @param {number} row
   */
  keyOf(row) {
    return this.shape?.key.map((name) => this.valueOf(row, name)) ?? [];
  }

  /**
   * @param {number} row
   * @param {string} name of a column
   * @returns {string | null}
   */
  valueOf(row, name) {
    const at = this.shape?.columns.findIndex((column) => column.name === name) ?? 0;
    return /** @type {string | null} */ (this.grid.rows[row][at]);
  }

  /**
   * Show what a row is now.
   * @param {number} row
   * @param {(string | null)[]} values its version first
   */
  replace(row, [version, ...values]) {
    this.versions[row] = version;
    this.grid.replace(row, values);
  }

  /**
   * @param {Shape} shape
   * @param {any[][]} rows
   * @param {boolean} hasNext
   * @param {boolean} isCut
   */
  #fill(shape, rows, hasNext, isCut) {
    const first = (this.pages.length - 1) * PAGE_ROWS + 1;
    const key = new Set(shape.key);
    const columns = shape.columns.map((column) => ({
      name: column.name,
      type: shortType(column.type),
      mark: key.has(column.name) ? "key" : "",
      sort: this.sort?.column === column.name ? this.#direction() : undefined,
    }));
    this.versions = rows.map((row) => row[0]);
    this.grid.show(columns, rows.map((row) => row.slice(1)), first);
    this.grid.options.onSelect?.(this.grid.marked);
    const last = first + rows.length - 1;
    const range = rows.length ? `Rows ${first.toLocaleString()} to ${last.toLocaleString()}` : this.filters.length ? "No row fits." : "No rows.";
    byId("rows-range").textContent = isCut ? `${range}. Their values are long: the page is cut.` : range;
    const isFar = shape.paging === "offset" && last >= MOST_SKIPPED;
    /** @type {HTMLButtonElement} */ (byId("rows-next")).disabled = !hasNext || isFar || rows.length === 0;
    /** @type {HTMLButtonElement} */ (byId("rows-previous")).disabled = this.pages.length === 1;
    show(byId("rows-far"), isFar && hasNext);
  }

  /** @returns {"ascending" | "descending"} */
  #direction() {
    return this.sort?.descending ? "descending" : "ascending";
  }

  /** @param {number} column */
  #sortBy(column) {
    const name = this.shape?.columns[column].name ?? "";
    if (this.sort?.column !== name) this.sort = { column: name, descending: false };
    else this.sort = this.sort.descending ? null : { column: name, descending: true };
    this.restart();
  }

  /** @param {1 | -1} by */
  #turn(by) {
    if (by < 0) this.pages.pop();
    else this.pages.push(this.#cursor());
    this.load();
  }

  /** @returns {Cursor} the last row of the page */
  #cursor() {
    const row = this.grid.rows.length - 1;
    const key = this.shape?.paging === "place" ? [this.versions[row]] : this.keyOf(row);
    return { key, sort: this.sort ? this.valueOf(row, this.sort.column) : null };
  }

  async #count() {
    const { shape } = this;
    if (!shape) return;
    await attempt(byId("rows"), async () => {
      const answer = await post("/v1/sql", { ...countRows(shape, this.filters), rows: "arrays" });
      const rows = Number(answer.rows[0][0]);
      byId("rows-total").textContent = `${count(rows, "row")}${this.filters.length ? " fit" : " in all"}`;
    });
  }
}
