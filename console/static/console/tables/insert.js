// @ts-check
/** A new row: a field for each column, which says what the column gets while nothing is typed. */

import { call } from "../lib/api.js";
import { byId, element, show } from "../lib/dom.js";
import { FormDraft } from "../lib/drafts.js";
import { clearProblem, onSubmit } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { checkJson, EMPTY, Field, noteOf, NULL, takesEmptyText } from "./inputs.js";
import { Lookup } from "./lookup.js";
import { withNotices } from "./notices.js";
import { isWritable, shortType } from "./shape.js";
import { insert } from "./statements.js";

/** @typedef {import("./shape.js").Column} Column */
/** @typedef {import("./inputs.js").Blank} Blank */

export class RowForm {
  /**
   * @param {import("./rows.js").Rows} rows
   * @param {import("./edit.js").Access} access
   */
  constructor(rows, access) {
    this.rows = rows;
    this.access = access;
    /** @type {Map<string, Field>} by column */
    this.fields = new Map();
    /** @type {FormDraft | null} */
    this.draft = null;
    /** The row that was sent last, and its key: sent again after a lost answer, it is inserted once. */
    this.sent = { body: "", key: "" };
    this.dialog = /** @type {HTMLDialogElement} */ (byId("insert-dialog"));
    this.form = /** @type {HTMLFormElement} */ (byId("insert-form"));
    byId("insert").addEventListener("click", () => this.#open());
    byId("insert-dialog-close").addEventListener("click", () => this.#end());
    this.form.addEventListener("input", () => this.#keep());
    // Enter in a field is a new line of its text, except with Ctrl.
    this.form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    onSubmit(this.form, () => this.#insert());
  }

  #open() {
    const shape = this.rows.shape;
    if (!shape) return;
    this.fields.clear();
    this.sent = { body: "", key: "" };
    clearProblem(this.form);
    const lines = shape.columns.filter(isWritable).map((column, at) => this.#lineOf(shape.table, column, at));
    byId("insert-fields").replaceChildren(...lines);
    this.draft = new FormDraft(this.access.who, `insert:${JSON.stringify([shape.table.schema, shape.table.name])}`);
    for (const [name, value] of this.draft.values() ?? []) {
      const field = this.fields.get(name);
      if (value === null) field?.stand(NULL);
      else if (value === "") field?.stand(EMPTY);
      else field?.write(value);
    }
    this.dialog.showModal();
  }

  /**
   * @param {import("./shape.js").Table} table
   * @param {Column} column
   * @param {number} at
   */
  #lineOf(table, column, at) {
    const line = element("div");
    line.className = "field";
    const label = element("label", `${column.name} `);
    const type = element("span", shortType(column.declared));
    type.className = "muted";
    label.append(type);
    label.setAttribute("for", `insert-${at}`);
    const blanks = blanksOf(column);
    const field = new Field(column, this.access.types(), { blanks, cleared: blanks[0] });
    this.fields.set(column.name, field);
    const { input } = field;
    input.id = `insert-${at}`;
    input.name = column.name;
    input.setAttribute("aria-describedby", `insert-${at}-error`);
    if (input instanceof HTMLTextAreaElement) input.rows = 1;
    const wrong = element("p");
    wrong.id = `insert-${at}-error`;
    wrong.className = "error";
    show(wrong, false);
    const row = element("div");
    row.className = "insert-line";
    row.append(input, ...this.#standIns(column, field));
    const onTake = (/** @type {Map<string, string>} */ values) => this.#fill(values);
    const lookup = Lookup.for(field, { table, tables: this.access.tables(), column: column.name, onTake });
    const note = element("p", noteOf(column));
    note.className = "hint";
    line.append(label, row, ...(lookup ? [lookup.list, lookup.note] : []), ...(note.textContent ? [note] : []), wrong);
    return line;
  }

  /** Write the columns of a foreign key, which belong together. @param {Map<string, string>} values */
  #fill(values) {
    for (const [name, value] of values) this.fields.get(name)?.write(value);
    this.#keep();
  }

  /**
   * Return buttons for what cannot be typed.
   * @param {Column} column
   * @param {Field} field
   */
  #standIns(column, field) {
    if (field.input instanceof HTMLSelectElement) return [];
    const [first] = blanksOf(column);
    const offered = [...(column.is_nullable && first !== NULL ? [NULL] : []), ...(takesEmptyText(column) ? [EMPTY] : [])];
    return offered.map((blank) => {
      const button = element("button", blank === NULL ? "NULL" : "Empty");
      button.setAttribute("type", "button");
      button.className = "quiet";
      button.setAttribute("aria-label", `${column.name}: ${blank.label}`);
      button.addEventListener("click", () => {
        field.stand(blank);
        this.#keep();
      });
      return button;
    });
  }

  #keep() {
    const typed = [...this.fields].filter(([, { value }]) => value !== undefined);
    this.draft?.keepValues(typed.map(([name, { value }]) => [name, value]));
  }

  /** Close what is sent or given up. */
  #end() {
    this.draft?.forget();
    this.dialog.close();
  }

  async #insert() {
    const { shape } = this.rows;
    if (!shape) return;
    const values = new Map();
    for (const column of shape.columns) {
      const value = this.fields.get(column.name)?.value;
      if (value === undefined) continue;
      checkJson(column, value);
      values.set(column.name, value);
    }
    const statement = insert(shape, values);
    const body = JSON.stringify(statement);
    if (body !== this.sent.body) this.sent = { body, key: crypto.randomUUID() };
    let answer;
    try {
      answer = await call("POST", "/v1/sql", statement, { headers: { "Idempotency-Key": this.sent.key } });
    } catch (error) {
      throw beside(error);
    }
    this.#end();
    announce(withNotices("The row is inserted.", answer));
    await this.rows.load();
  }
}

/**
 * Return what a column may get without a text; first what it gets if nothing is said.
 * @param {Column} column
 * @returns {Blank[]}
 */
function blanksOf(column) {
  const isFilled = column.default !== null || column.identity !== null;
  const filled = { label: `default: ${column.default ?? "the next number"}`, value: undefined };
  const needed = { label: "needs a value", value: undefined };
  const standing = [...(isFilled ? [filled] : []), ...(column.is_nullable ? [NULL] : [])];
  return standing.length ? standing : [needed];
}

/** Put an error about a column beside its field. @param {unknown} error */
function beside(error) {
  if (!(error instanceof Problem) || !error.content.column_name) return error;
  const { column_name: field } = error.content;
  return new Problem(error.status, { ...error.content, errors: [{ field, code: error.code, message: error.sentence }] });
}
