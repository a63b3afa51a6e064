// @ts-check
/** What an import will do: the first rows of a file, and the column that each of its columns goes into. */

import { byId, element, optionOf, show } from "../lib/dom.js";
import { Problem } from "../lib/problem.js";
import { quoted } from "../lib/identifiers.js";
import { beginningOf, delimiterOf, DELIMITERS, matched, recordsOf } from "./csv_file.js";
import { noteOf } from "./inputs.js";

/** @typedef {import("./shape.js").Column} Column */

const SHOWN = 5;
const NOT_IMPORTED = "";

export class ImportPreview {
  constructor() {
    /** @type {import("./csv_file.js").Beginning | null} */
    this.beginning = null;
    /** @type {Column[]} */
    this.columns = [];
    /** Of each column of the file: the table's column that it goes into. @type {string[]} */
    this.targets = [];
    this.delimiter = /** @type {HTMLSelectElement} */ (byId("import-delimiter"));
    this.header = /** @type {HTMLSelectElement} */ (byId("import-header"));
    for (const select of [this.delimiter, this.header]) select.addEventListener("change", () => this.#match());
  }

  /** Show nothing. @param {Column[]} columns of the table */
  clear(columns) {
    this.beginning = null;
    this.columns = columns.filter(({ generated }) => generated === null);
    show(byId("import-preview"), false);
  }

  /**
   * Read the beginning of a file, and guess how it is written.
   * @param {File} file
   * @throws {Problem}
   */
  async read(file) {
    this.beginning = null;
    show(byId("import-preview"), false);
    this.beginning = await beginningOf(file);
    this.delimiter.value = delimiterOf(this.beginning);
    this.header.value = "true";
    this.#match();
  }

  /**
   * Return the query of the import.
   * @throws {Problem} where a column would be left out that needs a value
   */
  query() {
    const needed = this.#left().filter((column) => !filledBy(column));
    if (!this.targets.some((name) => name !== NOT_IMPORTED)) throw new Problem(0, { title: "Choose a column of the table for one of the file's columns at least." });
    if (needed.length) throw new Problem(0, { title: `${listed(needed)} needs a value in each row: choose the column of the file that has it.` });
    const known = new Set(this.columns.map(({ name }) => name));
    // The API wants a name for what is skipped, too: one that no column has.
    const names = this.targets.map((name, at) => {
      let skipped = `column ${at + 1}`;
      while (known.has(skipped)) skipped += " ";
      return { name: name === NOT_IMPORTED ? skipped : name, isSkipped: name === NOT_IMPORTED };
    });
    const skip = names.filter(({ isSkipped }) => isSkipped);
    const list = (/** @type {{name: string}[]} */ all) => all.map(({ name }) => quoted(name)).join(",");
    return {
      header: this.header.value,
      delimiter: this.delimiter.value,
      columns: list(names),
      ...(skip.length ? { skip: list(skip) } : {}),
    };
  }

  /** Guess which column is which, by the names in the first line or by their order. */
  #match() {
    if (!this.beginning) return;
    const records = recordsOf(this.beginning, this.delimiter.value, SHOWN + 1);
    const first = (records[0] ?? []).map(({ value }) => value);
    const names = this.columns.map(({ name }) => name);
    this.targets = this.header.value === "true" ? matched(first, names) : first.map((_, at) => names[at] ?? NOT_IMPORTED);
    this.#draw(records);
  }

  /** @param {import("./csv_file.js").Part[][]} records */
  #draw(records) {
    const isNamed = this.header.value === "true";
    const head = element("tr");
    this.targets.forEach((target, at) => {
      const cell = element("th");
      cell.setAttribute("scope", "col");
      const name = isNamed ? (records[0][at]?.value ?? "") : `Column ${at + 1}`;
      cell.append(element("span", name), this.#choiceOf(target, at, name));
      head.append(cell);
    });
    byId("import-head").replaceChildren(head);
    byId("import-rows").replaceChildren(...records.slice(isNamed ? 1 : 0, SHOWN + 1).map((record) => this.#lineOf(record)));
    this.#say();
    show(byId("import-preview"));
  }

  /**
   * @param {string} target
   * @param {number} at
   * @param {string} name of the file's column
   */
  #choiceOf(target, at, name) {
    const select = document.createElement("select");
    select.setAttribute("aria-label", `${name} goes into`);
    select.append(new Option("not imported", NOT_IMPORTED), ...this.columns.map((column) => optionOf(column.name)));
    select.value = target;
    select.dataset.at = String(at);
    select.classList.toggle("muted", target === NOT_IMPORTED);
    select.addEventListener("change", () => {
      // Each column of the table gets its values from one of the file.
      this.targets = this.targets.map((other, each) => (each === at ? select.value : other === select.value ? NOT_IMPORTED : other));
      for (const each of byId("import-head").querySelectorAll("select")) {
        each.value = this.targets[Number(each.dataset.at)];
        each.classList.toggle("muted", each.value === NOT_IMPORTED);
      }
      this.#say();
    });
    return select;
  }

  /** @param {import("./csv_file.js").Part[]} record */
  #lineOf(record) {
    const line = element("tr");
    for (const { value, isQuoted } of record) {
      const isNull = value === "" && !isQuoted;
      const cell = element("td", isNull ? "NULL" : value === "" ? "empty" : value);
      cell.classList.toggle("null", value === "");
      line.append(cell);
    }
    return line;
  }

  /** Say what the columns get that the file does not fill. */
  #say() {
    const left = this.#left();
    const said = left.map((column) => `${column.name} ${filledBy(column) ? `gets ${filledBy(column)}` : "needs a value"}`);
    const skipped = this.targets.filter((target) => target === NOT_IMPORTED).length;
    const lines = [
      left.length ? `Not in the file: ${said.join(", ")}.` : "",
      this.columns.filter(({ name }) => this.targets.includes(name)).map(noteOf).find(Boolean) ?? "",
      skipped ? `${skipped === 1 ? "One column" : `${skipped} columns`} of the file ${skipped === 1 ? "is" : "are"} not imported.` : "",
    ];
    byId("import-left").textContent = lines.filter(Boolean).join(" ");
    show(byId("import-left"), lines.some(Boolean));
  }

  /** @returns {Column[]} the table's columns that the file does not fill */
  #left() {
    return this.columns.filter(({ name }) => !this.targets.includes(name));
  }
}

/** Return what a column gets by itself, '' where it needs a value. @param {Column} column */
function filledBy({ default: initial, identity, is_nullable }) {
  if (identity) return "the next number";
  if (initial !== null) return initial;
  return is_nullable ? "NULL" : "";
}

/** @param {Column[]} columns */
function listed(columns) {
  return columns.map(({ name }) => name).join(", ");
}

/** Fill the list of delimiters, whose values are themselves. */
export function offerDelimiters() {
  const names = { ",": ", comma", ";": "; semicolon", "\t": "tab", "|": "| bar" };
  byId("import-delimiter").replaceChildren(...DELIMITERS.map((delimiter) => new Option(names[delimiter], delimiter)));
}
