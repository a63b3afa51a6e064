// @ts-check
/** Conditions on the rows of a table: a chip for each, and a form to write one. */

import { byId, element, optionOf, show, stamp, within } from "../lib/dom.js";
import { exactValue } from "../lib/exact_text.js";
import { choicesOf, inputFor, noteOf } from "./inputs.js";
import { OPERATORS } from "./statements.js";

/** @typedef {import("./statements.js").Filter} Filter */

/** A chip has no more of a long value. */
const CHIP_CHARACTERS = 40;
const IS_NULL = /null$/;
/** What is compared with the text of any value. */
const OF_TEXT = new Set(["contains", "starts"]);
/** Comparisons in which a row without a value is neither. */
const LEAVES_NULL_OUT = new Set(["<", "<=", ">", ">=", "contains", "starts"]);

export class Filters {
  /**
   * @param {import("./rows.js").Rows} rows
   * @param {() => any[]} types of the database
   */
  constructor(rows, types) {
    this.rows = rows;
    this.types = types;
    this.menu = /** @type {HTMLDetailsElement} */ (byId("filter-menu"));
    this.columns = /** @type {HTMLSelectElement} */ (byId("filter-column"));
    this.operators = /** @type {HTMLSelectElement} */ (byId("filter-operator"));
    /** The filter that the form changes, -1 for a new one. */
    this.changed = -1;
    /** @type {import("./inputs.js").Input} */
    this.input = document.createElement("textarea");
    within(this.menu, "summary").addEventListener("click", () => !this.menu.open && this.#write(-1));
    this.columns.addEventListener("change", () => {
      this.#offerOperators(this.operators.value);
      this.#offerValue(exactValue(this.input));
    });
    this.operators.addEventListener("change", () => this.#refresh());
    byId("filters").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#apply();
    });
  }

  /** Show the chips of the rows' view. */
  draw() {
    const { filters } = this.rows.view;
    byId("filter-chips").replaceChildren(...(filters ?? []).map((filter, at) => this.#chipOf(filter, at)));
    if (filters) return;
    const chip = stamp("filter-chip");
    within(chip, "[data-action=edit]").remove();
    chip.prepend(element("span", "a filter that cannot be read"));
    this.#bindRemove(chip, "a filter that cannot be read", () => this.rows.change({ filters: [] }));
    byId("filter-chips").replaceChildren(chip);
  }

  /**
   * @param {Filter} filter
   * @param {number} at
   */
  #chipOf({ column, operator, value }, at) {
    const chip = stamp("filter-chip");
    const line = value.replace(/[\r\n\t]+/g, " ");
    const short = line.length > CHIP_CHARACTERS ? `${line.slice(0, CHIP_CHARACTERS)}…` : line;
    const text = [column, OPERATORS[operator], IS_NULL.test(operator) ? "" : short || "“”"].filter(Boolean).join(" ");
    const edit = within(chip, "[data-action=edit]");
    edit.textContent = text;
    edit.addEventListener("click", () => {
      this.#write(at);
      this.menu.open = true;
    });
    this.#bindRemove(chip, text, () => this.rows.change({ filters: (this.rows.view.filters ?? []).filter((_, each) => each !== at) }));
    return chip;
  }

  /**
   * @param {HTMLElement} chip
   * @param {string} text
   * @param {() => void} action
   */
  #bindRemove(chip, text, action) {
    const remove = within(chip, "[data-action=remove]");
    remove.setAttribute("aria-label", `Remove the filter: ${text}`);
    remove.addEventListener("click", () => {
      action();
      within(this.menu, "summary").focus();
    });
  }

  /** Fill the form. @param {number} at of the filter that it changes, -1 for a new one */
  #write(at) {
    const filter = this.rows.view.filters?.[at];
    const names = (this.rows.shape?.columns ?? []).map(({ name }) => name);
    if (filter && !names.includes(filter.column)) names.unshift(filter.column);
    this.changed = filter ? at : -1;
    this.columns.replaceChildren(...names.map(optionOf));
    this.columns.value = filter?.column ?? names[0] ?? "";
    this.#offerOperators(filter?.operator ?? "=", filter?.operator);
    this.#offerValue(filter?.value ?? "");
    queueMicrotask(() => (filter && !IS_NULL.test(filter.operator) ? this.input : this.columns).focus());
  }

  /**
   * Offer the comparisons that the chosen column's type has.
   * @param {string} wanted the one to choose, if it is offered
   * @param {string} [present] the one of the filter, which is offered in any case
   */
  #offerOperators(wanted, present) {
    const isOrdered = this.#column()?.isOrdered ?? true;
    const offered = Object.entries(OPERATORS).filter(([name]) => isOrdered || OF_TEXT.has(name) || IS_NULL.test(name) || name === present);
    this.operators.replaceChildren(...offered.map(([name, label]) => new Option(label, name)));
    this.operators.value = offered.some(([name]) => name === wanted) ? wanted : offered[0][0];
  }

  #column() {
    return this.rows.shape?.columns.find(({ name }) => name === this.columns.value);
  }

  /** Put the field for a value of the chosen column into the form. @param {string} value */
  #offerValue(value) {
    const column = this.#column();
    const choices = column ? choicesOf(column, this.types()) : [];
    // An input would take the line breaks out of what is pasted.
    this.input = inputFor({ type: column?.type ?? "text" }, choices, choices.length && !choices.includes(value) ? null : value);
    if (this.input instanceof HTMLTextAreaElement) this.input.rows = 1;
    this.input.id = "filter-value";
    this.input.addEventListener("keydown", (event) => {
      const { key, shiftKey, isComposing } = /** @type {KeyboardEvent} */ (event);
      if (key !== "Enter" || shiftKey || isComposing) return;
      event.preventDefault();
      this.input.form?.requestSubmit();
    });
    byId("filter-place").replaceChildren(this.input);
    this.#refresh();
  }

  #refresh() {
    const column = this.#column();
    const operator = this.operators.value;
    const isCompared = !IS_NULL.test(operator);
    const note = column && isCompared && !OF_TEXT.has(operator) ? noteOf(column) : "";
    show(byId("filter-value-part"), isCompared);
    byId("filter-note").textContent = note;
    show(byId("filter-note"), note !== "");
    show(byId("filter-null"), (column?.is_nullable ?? false) && LEAVES_NULL_OUT.has(operator));
  }

  #apply() {
    const operator = /** @type {Filter["operator"]} */ (this.operators.value);
    const filter = { column: this.columns.value, operator, value: IS_NULL.test(operator) ? "" : exactValue(this.input) };
    const filters = [...(this.rows.view.filters ?? [])];
    filters.splice(this.changed < 0 ? filters.length : this.changed, 1, filter);
    this.menu.open = false;
    within(this.menu, "summary").focus();
    void this.rows.change({ filters });
  }
}
