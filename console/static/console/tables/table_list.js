// @ts-check
/** The tables of the environment: found by their names, beside the open one; on a phone a list to open. */

import { byId, element, show } from "../lib/dom.js";

/** @typedef {import("./shape.js").Table} Table */

/** As in tables.css. */
const NARROW = matchMedia("(width < 900px)");

export class TableList {
  /**
   * @param {(table: Table) => string} addressOf
   * @param {(table: Table) => void} onOpen
   */
  constructor(addressOf, onOpen) {
    this.addressOf = addressOf;
    this.onOpen = onOpen;
    /** @type {Table[]} */
    this.tables = [];
    /** @type {Table | null} */
    this.opened = null;
    this.side = /** @type {HTMLDetailsElement} */ (byId("tables-side"));
    this.query = /** @type {HTMLInputElement} */ (byId("tables-filter"));
    this.query.addEventListener("input", () => this.#draw());
    const fold = () => (this.side.open = !NARROW.matches);
    NARROW.addEventListener("change", fold);
    this.side.addEventListener("toggle", () => this.side.open && this.#reveal());
    fold();
  }

  /**
   * @param {Table[]} tables
   * @param {boolean} isCut there are more
   */
  show(tables, isCut) {
    this.tables = tables;
    show(byId("tables-cut"), isCut);
    this.#draw();
  }

  /** Mark the open table, and bring it into sight. @param {Table | null} table */
  mark(table) {
    this.opened = table;
    byId("tables-open").textContent = table ? nameOf(table) : "Tables";
    this.#draw();
    if (NARROW.matches) this.side.open = false;
    this.#reveal();
  }

  #reveal() {
    byId("tables-list").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  #draw() {
    const wanted = this.query.value.trim().toLowerCase();
    const tables = this.tables.filter((table) => `${table.schema}.${table.name}`.toLowerCase().includes(wanted));
    byId("tables-list").replaceChildren(...tables.map((table) => this.#itemOf(table)));
    show(byId("tables-none"), tables.length === 0);
  }

  /** @param {Table} table */
  #itemOf(table) {
    const item = element("li");
    const link = /** @type {HTMLAnchorElement} */ (element("a", nameOf(table)));
    link.href = this.addressOf(table);
    if (this.opened?.schema === table.schema && this.opened.name === table.name) link.setAttribute("aria-current", "true");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.onOpen(table);
    });
    item.append(link);
    return item;
  }
}

/** @param {Table} table */
function nameOf({ schema, name }) {
  return schema === "public" ? name : `${schema}.${name}`;
}
