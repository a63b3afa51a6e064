// @ts-check
/** Changes of rows: one value, a new row, rows that go. Each finds its row by the primary key. */

import { call, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show } from "../lib/dom.js";
import { FormDraft } from "../lib/drafts.js";
import { exactValue, setExactValue } from "../lib/exact_text.js";
import { clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { count } from "../lib/format.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { choicesOf, inputFor } from "./inputs.js";
import { isWritable, shortType, whyFixed } from "./shape.js";
import { insert, remove, update } from "./statements.js";

/** @typedef {import("./rows.js").Rows} Rows */

export class Editing {
  /**
   * @param {import("../frame/shell.js").Who} who
   * @param {{sql: string[]}} permissions
   * @param {() => any[]} types of the database
   */
  constructor(who, permissions, types) {
    this.who = who;
    this.permissions = permissions;
    this.types = types;
    /** @type {{row: number, column: number}} */
    this.place = { row: 0, column: 0 };
    /** @type {Map<string, {choice: HTMLSelectElement, input: import("./inputs.js").Input}>} of a new row, by column */
    this.fields = new Map();
    /** @type {FormDraft | null} of the dialog that is open */
    this.draft = null;
    /** The row that was sent last, and its key: sent again after a lost answer, it is inserted once. */
    this.sent = { body: "", key: "" };
  }

  /** @param {Rows} rows */
  bind(rows) {
    this.rows = rows;
    onSubmit(form("cell-form"), () => this.#saveCell());
    onSubmit(form("insert-form"), () => this.#insert());
    byId("cell-null").addEventListener("change", () => this.#toggleNull());
    byId("insert").addEventListener("click", () => this.#openInsert());
    onPress(byId("delete"), byId("rows"), () => this.#delete());
    for (const id of ["cell", "insert-dialog"]) {
      byId(`${id}-close`).addEventListener("click", () => this.#end(id));
    }
    form("cell-form").addEventListener("input", () => this.draft?.keepValues([nullBox().checked, exactValue(valueInput())]));
    form("insert-form").addEventListener("input", () => {
      this.draft?.keepValues([...this.fields].map(([name, { choice, input }]) => [name, choice.value, exactValue(input)]));
    });
  }

  /** Show what the role may do with a table. */
  offer() {
    const shape = this.rows?.shape;
    if (!shape) return;
    const why = whyFixed(shape);
    byId("fixed").textContent = why;
    show(byId("fixed"), why !== "" && this.#may("update"));
    const takesRows = !shape.table.kind.includes("view");
    show(byId("insert"), takesRows && this.#may("create"));
    show(byId("import"), takesRows && this.#may("create"));
  }

  /** @param {Set<number>} marked rows */
  mark(marked) {
    const isOffered = marked.size > 0 && this.#may("delete") && (this.rows?.shape?.key.length ?? 0) > 0;
    byId("delete").textContent = `Delete ${count(marked.size, "row")}`;
    show(byId("delete"), isOffered);
  }

  /**
   * Show a value, to be changed where that is possible.
   * @param {number} row
   * @param {number} column
   */
  open(row, column) {
    const { rows } = this;
    const shape = rows?.shape;
    if (!rows || !shape || !rows.grid.rows[row]) return;
    this.place = { row, column };
    const of = shape.columns[column];
    const value = /** @type {string | null} */ (rows.grid.rows[row][column]);
    const isOpen = shape.key.length > 0 && this.#may("update") && isWritable(of);
    fill(dialog("cell"), { name: of.name, about: shortType(of.type) });
    const place = byId("cell-place");
    const input = inputFor(of, choicesOf(of, this.types()), value);
    input.id = "cell-value";
    input.toggleAttribute("readonly", !isOpen);
    input.setAttribute("aria-labelledby", "cell-label");
    input.setAttribute("aria-describedby", "cell-conflict");
    place.replaceChildren(input);
    nullBox().checked = value === null;
    nullBox().disabled = !isOpen;
    this.#restoreCell(shape, row, of.name, isOpen);
    show(byId("cell-null-part"), of.is_nullable || value === null);
    show(byId("cell-save"), isOpen);
    byId("cell-why").textContent = isOpen ? "" : whyFixed(shape) || (isWritable(of) ? "Your role may not change it." : "PostgreSQL computes this column.");
    show(byId("cell-why"), !isOpen);
    show(byId("cell-conflict"), false);
    clearProblem(form("cell-form"));
    this.#toggleNull();
    dialog("cell").showModal();
  }

  /**
   * Bring back what was typed into this cell before its page went.
   * @param {import("./shape.js").Shape} shape
   * @param {number} row
   * @param {string} column
   * @param {boolean} isOpen
   */
  #restoreCell({ table }, row, column, isOpen) {
    const place = JSON.stringify([table.schema, table.name, column, this.rows?.keyOf(row)]);
    this.draft = isOpen ? new FormDraft(this.who, `cell:${place}`) : null;
    const kept = this.draft?.values();
    show(byId("cell-restored"), Boolean(kept));
    if (!kept) return;
    nullBox().checked = kept[0];
    setExactValue(valueInput(), kept[1]);
  }

  /** Close a dialog whose values are sent or given up. @param {string} id */
  #end(id) {
    this.draft?.forget();
    dialog(id).close();
  }

  async #saveCell() {
    const { rows } = this;
    const shape = rows?.shape;
    if (!rows || !shape) return;
    const { row, column } = this.place;
    const name = shape.columns[column].name;
    const value = nullBox().checked ? null : exactValue(valueInput());
    const version = rows.versions[row] ?? "";
    const queries = update(shape, { key: rows.keyOf(row), version, column: name, value });
    const [done, renamed, kept] = (await post("/v1/sql", { queries, rows: "arrays" })).results;
    const now = done.row_count ? renamed.rows[0] : kept.rows[0];
    if (done.row_count) {
      if (now) rows.replace(row, now);
      this.#end("cell");
      announce(`${name} is changed.`);
    } else if (!now) {
      throw new Problem(409, { title: "This row is not there any more: someone deleted it, or changed its key." });
    } else if (now[0] === version) {
      throw new Problem(409, { title: "PostgreSQL kept the row as it is: a trigger or a row security policy refuses the change." });
    } else {
      rows.replace(row, now);
      const present = now[column + 1];
      byId("cell-conflict").textContent =
        `Someone changed this row in the meantime. ${name} is now ${present === null ? "NULL" : `“${present}”`}. Nothing was saved: press Save again to replace it with yours.`;
      show(byId("cell-conflict"));
    }
  }

  #toggleNull() {
    valueInput().disabled = nullBox().checked;
  }

  #openInsert() {
    const shape = this.rows?.shape;
    if (!shape) return;
    this.fields.clear();
    this.sent = { body: "", key: "" };
    clearProblem(form("insert-form"));
    const lines = shape.columns.filter(isWritable).map((column, at) => this.#fieldOf(column, at));
    byId("insert-fields").replaceChildren(...lines);
    this.draft = new FormDraft(this.who, `insert:${JSON.stringify([shape.table.schema, shape.table.name])}`);
    for (const [name, choice, value] of this.draft.values() ?? []) {
      const field = this.fields.get(name);
      if (!field) continue;
      field.choice.value = choice;
      setExactValue(field.input, value);
      field.choice.dispatchEvent(new Event("change"));
    }
    dialog("insert-dialog").showModal();
  }

  /**
   * @param {import("./shape.js").Column} column
   * @param {number} at
   */
  #fieldOf(column, at) {
    const line = element("div");
    line.className = "field";
    const label = element("label", `${column.name} `);
    const type = element("span", shortType(column.type));
    type.className = "muted";
    label.append(type);
    label.setAttribute("for", `insert-${at}`);
    const hasDefault = column.default !== null || column.identity !== null;
    const input = inputFor(column, choicesOf(column, this.types()), null);
    input.id = `insert-${at}`;
    const choice = document.createElement("select");
    choice.setAttribute("aria-label", `How ${column.name} is filled`);
    choice.append(new Option("Value", "value"));
    if (hasDefault) choice.append(new Option(`Default: ${column.default ?? "next number"}`, "default"));
    if (column.is_nullable) choice.append(new Option("NULL", "null"));
    choice.value = hasDefault ? "default" : column.is_nullable ? "null" : "value";
    const refresh = () => show(input, choice.value === "value");
    choice.addEventListener("change", refresh);
    refresh();
    this.fields.set(column.name, { choice, input });
    line.append(label, choice, input);
    return line;
  }

  async #insert() {
    const { rows } = this;
    if (!rows?.shape) return;
    const values = new Map();
    for (const [name, { choice, input }] of this.fields) {
      if (choice.value !== "default") values.set(name, choice.value === "null" ? null : exactValue(input));
    }
    const statement = insert(rows.shape, values);
    const body = JSON.stringify(statement);
    if (body !== this.sent.body) this.sent = { body, key: crypto.randomUUID() };
    await call("POST", "/v1/sql", statement, { headers: { "Idempotency-Key": this.sent.key } });
    this.#end("insert-dialog");
    announce("The row is inserted.");
    await rows.load();
  }

  async #delete() {
    const { rows } = this;
    const shape = rows?.shape;
    if (!rows || !shape) return;
    const marked = [...rows.grid.marked];
    await confirm(`Delete ${count(marked.length, "row")}?`, `From ${shape.table.schema}.${shape.table.name}. It cannot be undone.`, "Delete");
    const queries = marked.map((row) => remove(shape, rows.keyOf(row), rows.versions[row] ?? ""));
    const answer = await post("/v1/sql", { queries });
    const results = answer.results ?? [answer];
    const gone = results.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.row_count, 0);
    await rows.load();
    const kept = marked.length - gone;
    announce(`${count(gone, "row")} deleted.${kept ? ` ${count(kept, "row")} had been changed in the meantime and stayed: check again.` : ""}`);
  }

  /** @param {string} action */
  #may(action) {
    return this.permissions.sql?.includes(action) ?? false;
  }
}

function nullBox() {
  return /** @type {HTMLInputElement} */ (byId("cell-null"));
}

function valueInput() {
  return /** @type {HTMLTextAreaElement} */ (byId("cell-value"));
}

/** @param {string} id */
function dialog(id) {
  return /** @type {HTMLDialogElement} */ (byId(id));
}

/** @param {string} id */
function form(id) {
  return /** @type {HTMLFormElement} */ (byId(id));
}
