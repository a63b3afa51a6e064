// @ts-check
/** The rows that a foreign key may refer to, below the field for its value. */

import { query } from "../lib/api.js";
import { element, show } from "../lib/dom.js";
import { exactValue } from "../lib/exact_text.js";
import { sentenceOf } from "../lib/problem.js";
import { foreignKeyOf } from "./shape.js";
import { lookUp } from "./statements.js";

const PAUSE_MS = 150;
const LABELS = 2;
const TEXT = /^(?:text|citext|name|character(?: varying)?(?:\(\d+\))?)$/;
let lists = 0;

/** @typedef {import("./shape.js").Table} Table */
/**
 * tables: of the database. known: the value that another column of the key has and keeps, null for any.
 * onTake: a row was chosen, with the value for each column of the key.
 * @typedef {{table: Table, tables: Table[], column: string, known?: (name: string) => string | null,
 *   onTake?: (values: Map<string, string>) => void}} Options
 */

export class Lookup {
  /**
   * Offer the rows that a column may refer to; null for a column without a foreign key.
   * @param {import("./inputs.js").Field} field
   * @param {Options} options
   */
  static for(field, options) {
    const key = foreignKeyOf(options.table, options.column);
    const isTyped = field.input instanceof HTMLTextAreaElement;
    return key && isTyped ? new Lookup(field, key, options) : null;
  }

  /**
   * @param {import("./inputs.js").Field} field
   * @param {import("./shape.js").ForeignKey} key
   * @param {Options} options
   */
  constructor(field, { columns, references }, { tables, column, known, onTake }) {
    this.field = field;
    this.columns = columns;
    this.reference = references;
    /** The place of the column in the key. */
    this.at = columns.indexOf(column);
    this.known = columns.map((name) => (name === column ? null : (known?.(name) ?? null)));
    this.labels = labelsOf(references, this.at, tables);
    this.onTake = onTake;
    /** @type {string[][]} the rows that are offered: the key's values, then what describes them */
    this.rows = [];
    this.chosen = -1;
    this.asked = 0;
    this.list = element("ul");
    this.list.className = "lookup";
    this.list.id = `lookup-${++lists}`;
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", `Rows of ${references.table}`);
    this.note = element("p");
    this.note.className = "hint";
    this.#close();
    const { input } = field;
    // No combobox: a text area has no other role than its own.
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", this.list.id);
    input.addEventListener("input", () => this.#askSoon());
    // Nothing is typed yet: all rows are offered.
    input.addEventListener("focus", () => void this.#ask(""));
    input.addEventListener("blur", () => this.#close());
    input.addEventListener("keydown", (event) => this.#onKey(/** @type {KeyboardEvent} */ (event)));
  }

  #askSoon() {
    // A value that came with another field's choice.
    if (document.activeElement !== this.field.input) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.#ask(exactValue(this.field.input)), PAUSE_MS);
  }

  /** @param {string} typed */
  async #ask(typed) {
    const asked = ++this.asked;
    /** @type {string[][]} */
    let rows = [];
    let said = "";
    try {
      rows = (await query("/v1/sql", { ...lookUp(this.reference, { at: this.at, known: this.known, labels: this.labels, typed }), rows: "arrays", read_only: true })).rows;
      if (!rows.length) said = `No row of ${this.reference.table} begins so.`;
    } catch (error) {
      said = `The rows of ${this.reference.table} cannot be shown. ${sentenceOf(error)}`;
    }
    // What was typed since has its own answer.
    if (asked !== this.asked || document.activeElement !== this.field.input) return;
    this.#draw(rows);
    this.note.textContent = said;
    show(this.note, said !== "");
  }

  /** @param {string[][]} rows */
  #draw(rows) {
    this.rows = rows;
    this.list.replaceChildren(...rows.map((row, at) => this.#optionOf(row, at)));
    this.chosen = -1;
    this.field.input.removeAttribute("aria-activedescendant");
    show(this.list, rows.length > 0);
  }

  /**
   * @param {string[]} row
   * @param {number} at
   */
  #optionOf(row, at) {
    const option = element("li");
    option.id = `${this.list.id}-${at}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    const about = element("span", row[row.length - 1]);
    about.className = "muted";
    option.append(element("span", row[this.at]), about);
    // Before the field loses the focus.
    option.addEventListener("pointerdown", (event) => event.preventDefault());
    option.addEventListener("click", () => this.#take(row));
    return option;
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const options = [...this.list.children];
    if (this.list.hidden || event.isComposing) return;
    if (step) {
      this.chosen = (this.chosen + step + options.length + (this.chosen < 0 && step < 0 ? 1 : 0)) % options.length;
      options.forEach((option, at) => option.setAttribute("aria-selected", String(at === this.chosen)));
      options[this.chosen].scrollIntoView({ block: "nearest" });
      this.field.input.setAttribute("aria-activedescendant", options[this.chosen].id);
    } else if (event.key === "Enter" && this.chosen >= 0) {
      this.#take(this.rows[this.chosen]);
    } else return;
    // Neither moves the cursor nor saves what was typed before.
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** @param {string[]} row */
  #take(row) {
    this.field.write(row[this.at]);
    this.field.input.dispatchEvent(new Event("input", { bubbles: true }));
    clearTimeout(this.timer);
    this.#close();
    this.onTake?.(new Map(this.columns.map((name, at) => [name, row[at]])));
  }

  #close() {
    clearTimeout(this.timer);
    this.asked += 1;
    this.#draw([]);
    show(this.note, false);
  }
}

/**
 * Return the columns that describe a row best: the others of the key, then texts, or else what comes first.
 * @param {import("./statements.js").Reference} reference
 * @param {number} at the column of the key that is shown anyway
 * @param {Table[]} tables
 */
function labelsOf({ schema, table, columns }, at, tables) {
  const found = tables.find((each) => each.schema === schema && each.name === table);
  const others = (found?.columns ?? []).filter(({ name }) => !columns.includes(name));
  const texts = others.filter(({ type }) => TEXT.test(type));
  const labels = (texts.length ? texts : others).slice(0, LABELS).map(({ name }) => name);
  return [...columns.filter((_, other) => other !== at), ...labels];
}
