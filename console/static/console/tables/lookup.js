// @ts-check
/** The rows that a foreign key may refer to, below the field for its value. */

import { query } from "../lib/api.js";
import { element, show } from "../lib/dom.js";
import { exactValue } from "../lib/exact_text.js";
import { sentenceOf } from "../lib/problem.js";
import { referenceOf } from "./shape.js";
import { lookUp } from "./statements.js";

const PAUSE_MS = 150;
const LABELS = 2;
const TEXT = /^(?:text|character|citext|name)/;
let lists = 0;

/** @typedef {import("./shape.js").Table} Table */

export class Lookup {
  /**
   * Offer the rows that a column may refer to; null for a column without a foreign key of its own.
   * @param {import("./inputs.js").Field} field
   * @param {{table: Table, tables: Table[], column: string, onTake?: () => void}} of tables: of the database; onTake: a row was chosen
   */
  static for(field, of) {
    const reference = referenceOf(of.table, of.column);
    const isTyped = field.input instanceof HTMLTextAreaElement;
    return reference && isTyped ? new Lookup(field, reference, of.tables, of.onTake) : null;
  }

  /**
   * @param {import("./inputs.js").Field} field
   * @param {import("./statements.js").Reference} reference
   * @param {Table[]} tables
   * @param {() => void} [onTake]
   */
  constructor(field, reference, tables, onTake) {
    this.field = field;
    this.reference = reference;
    this.labels = labelsOf(reference, tables);
    this.onTake = onTake;
    this.chosen = -1;
    this.asked = 0;
    this.list = element("ul");
    this.list.className = "lookup";
    this.list.id = `lookup-${++lists}`;
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", `Rows of ${reference.table}`);
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
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.#ask(exactValue(this.field.input)), PAUSE_MS);
  }

  /** @param {string} typed */
  async #ask(typed) {
    const asked = ++this.asked;
    /** @type {[string, string][]} */
    let rows = [];
    let said = "";
    try {
      rows = (await query("/v1/sql", { ...lookUp(this.reference, this.labels, typed), rows: "arrays", read_only: true })).rows;
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

  /** @param {[string, string][]} rows values with what describes them */
  #draw(rows) {
    this.list.replaceChildren(...rows.map(([value, label], at) => this.#optionOf(value, label, at)));
    this.chosen = -1;
    this.field.input.removeAttribute("aria-activedescendant");
    show(this.list, rows.length > 0);
  }

  /**
   * @param {string} value
   * @param {string} label
   * @param {number} at
   */
  #optionOf(value, label, at) {
    const option = element("li");
    option.id = `${this.list.id}-${at}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    const about = element("span", label);
    about.className = "muted";
    option.append(element("span", value), about);
    // Before the field loses the focus.
    option.addEventListener("pointerdown", (event) => event.preventDefault());
    option.addEventListener("click", () => this.#take(value));
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
      this.#take(options[this.chosen].firstElementChild?.textContent ?? "");
    } else return;
    // Neither moves the cursor nor saves what was typed before.
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** @param {string} value */
  #take(value) {
    this.field.write(value);
    this.field.input.dispatchEvent(new Event("input", { bubbles: true }));
    clearTimeout(this.timer);
    this.#close();
    this.onTake?.();
  }

  #close() {
    clearTimeout(this.timer);
    this.asked += 1;
    this.#draw([]);
    show(this.note, false);
  }
}

/**
 * Return the columns that describe a row best: texts, or else what comes first.
 * @param {import("./statements.js").Reference} reference
 * @param {Table[]} tables
 */
function labelsOf({ schema, table, columns }, tables) {
  const found = tables.find((each) => each.schema === schema && each.name === table);
  const others = (found?.columns ?? []).filter(({ name }) => !columns.includes(name));
  const texts = others.filter(({ type }) => TEXT.test(type));
  return (texts.length ? texts : others).slice(0, LABELS).map(({ name }) => name);
}
