// @ts-check
/**
 * A value is changed in its cell. Enter or Ctrl Enter saves, Shift Enter is a new line, Escape leaves.
 * What was typed and not saved stays until it is saved or left: it is never saved by itself.
 */

import { openDrawer } from "../grid/drawer.js";
import { indented, LongValue, shownOf } from "../grid/values.js";
import { get, post } from "../lib/api.js";
import { byId, fill, show } from "../lib/dom.js";
import { FormDraft } from "../lib/drafts.js";
import { exactValue } from "../lib/exact_text.js";
import { bytes } from "../lib/format.js";
import { clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { announce, tell } from "../lib/status.js";
import { checkJson, EMPTY, Field, noteOf, NULL, takesEmptyText, takesLines } from "./inputs.js";
import { Lookup } from "./lookup.js";
import { withNotices } from "./notices.js";
import { isWritable, shortType, whyFixed } from "./shape.js";
import { update } from "./statements.js";

/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./shape.js").Column} Column */

/** What the body of a request has beside a value: a key may be long, too. */
const REQUEST_BYTES = 16_000;
const LEAST_PX = 360;
const LARGE_PX = 460;
const MOST_PX = 320;

export class CellEditor {
  /**
   * @param {Rows} rows
   * @param {import("./edit.js").Access} access
   */
  constructor(rows, access) {
    this.rows = rows;
    this.access = access;
    this.place = { row: 0, column: 0 };
    /** @type {Field | null} null while no cell is open */
    this.field = null;
    /** The text as the field shows it at first, null for NULL. @type {string | null} */
    this.before = null;
    /** @type {FormDraft | null} */
    this.draft = null;
    this.dialog = /** @type {HTMLDialogElement} */ (byId("cell"));
    this.form = /** @type {HTMLFormElement} */ (byId("cell-form"));
    byId("rows-grid").append(this.dialog);
    onSubmit(this.form, () => this.#save(this.field?.value));
    onPress(byId("cell-null"), this.form, () => this.#save(null));
    onPress(byId("cell-empty"), this.form, () => this.#save(""));
    byId("cell-close").addEventListener("click", () => this.#leave());
    this.dialog.addEventListener("keydown", (event) => this.#onKey(event));
    this.form.addEventListener("input", () => {
      this.draft?.keepValues([this.field?.value ?? null]);
      this.#fit();
    });
    rows.grid.root.addEventListener("scroll", () => this.dialog.open && this.#fit());
    addEventListener("resize", () => this.dialog.open && this.#fit());
    document.addEventListener("pointerdown", (event) => this.#onPointer(event), true);
  }

  get #isChanged() {
    return this.field !== null && this.field.value !== this.before;
  }

  /**
   * Begin to change a value; show one that cannot be changed.
   * @param {number} row
   * @param {number} column of the table
   * @param {string} [typed] the key that began it, in place of the value
   */
  open(row, column, typed) {
    const { shape } = this.rows;
    if (!shape || !this.rows.values[row] || this.#isUnsaved()) return;
    const of = shape.columns[column];
    const value = this.rows.values[row][column];
    const why = this.#whyNot(shape, of);
    if (why && typed !== undefined) return announce(why);
    if (why) return this.#read(of, value, why);
    if (value instanceof LongValue) return void this.#load(row, column, value, typed).catch(tell);
    this.place = { row, column };
    // PostgreSQL keeps the blanks of json, and none of jsonb.
    this.before = value !== null && of.type === "jsonb" ? indented(value) : value;
    this.field = fieldOf(of, this.access.types(), this.before);
    const draft = new FormDraft(this.access.who, `cell:${JSON.stringify([shape.table.schema, shape.table.name, of.name, this.rows.keyOf(row)])}`);
    this.draft = draft;
    const kept = draft.values();
    if (kept) this.#restore(kept[0]);
    this.#show(of, value, Boolean(kept));
    if (typed !== undefined) this.#begin(typed);
  }

  /**
   * Read a long value, then begin to change it; show one that is too long to be saved here.
   * @param {number} row
   * @param {number} column
   * @param {LongValue} value
   * @param {string} [typed]
   */
  async #load(row, column, value, typed) {
    const { rows } = this;
    const limit = (await get("/v1/sql/usage")).statements.body_limit_bytes;
    const of = rows.shape?.columns[column];
    // As JSON it may be longer than it is.
    const whole = value.bytes < limit ? await value.whole() : "";
    // Other rows are shown since.
    if (!of || rows.values[row]?.[column] !== value) return;
    if (value.bytes >= limit || new Blob([JSON.stringify(whole)]).size + REQUEST_BYTES > limit) {
      const why = `A value of ${bytes(value.bytes)} cannot be changed here: a request takes ${bytes(limit)}. Import it from a file, or compute it with SQL.`;
      return typed === undefined ? this.#read(of, value, why) : announce(why);
    }
    rows.values[row][column] = whole;
    this.open(row, column, typed);
  }

  /** Leave what the cells of another page were: what was typed is kept, and said to be. */
  abandon() {
    if (!this.dialog.open) return;
    if (this.#isChanged) announce("What you typed into the cell is not saved. Open the cell again to go on.");
    this.#end();
  }

  /**
   * @param {import("./shape.js").Shape} shape
   * @param {Column} column
   * @returns {string} why the value cannot be changed, '' if it can
   */
  #whyNot(shape, column) {
    if (whyFixed(shape)) return whyFixed(shape);
    if (!isWritable(column)) return "PostgreSQL computes this column.";
    return this.access.may("update") ? "" : "Your role may not change it.";
  }

  /**
   * @param {Column} column
   * @param {import("../grid/values.js").Value} value
   * @param {string} why
   */
  #read({ name, type }, value, why) {
    byId("value-note").textContent = why;
    show(byId("value-note"));
    openDrawer({ name, type: shortType(type) }, value);
  }

  /**
   * @param {Column} of
   * @param {string | null} value
   * @param {boolean} isRestored
   */
  #show(of, value, isRestored) {
    const { field, dialog } = this;
    const { shape } = this.rows;
    if (!field || !shape) return;
    const { input } = field;
    const number = (this.rows.view.first + this.place.row).toLocaleString();
    fill(dialog, { place: `${of.name}, row ${number}` });
    input.id = "cell-value";
    input.setAttribute("aria-label", `Value of ${of.name} in row ${number}`);
    input.setAttribute("aria-describedby", "cell-keys cell-note cell-conflict");
    const lookup = Lookup.for(field, {
      table: shape.table,
      tables: this.access.tables(),
      column: of.name,
      known: (name) => this.#kept(name),
      onTake: () => this.form.requestSubmit(),
    });
    byId("cell-place").replaceChildren(input, ...(lookup ? [lookup.list, lookup.note] : []));
    const note = isRestored ? "This was typed before, and is not saved yet." : noteOf(of);
    byId("cell-note").textContent = note;
    show(byId("cell-note"), note !== "");
    show(byId("cell-conflict"), false);
    const isSelect = input instanceof HTMLSelectElement;
    if (!isSelect) input.rows = 1;
    byId("cell-keys").textContent = isSelect || !takesLines(of) ? "Enter saves, Esc leaves" : "Enter saves, Shift Enter: new line, Esc leaves";
    show(byId("cell-null"), of.is_nullable && value !== null && !isSelect);
    show(byId("cell-empty"), takesEmptyText(of) && value !== "" && !isSelect);
    clearProblem(this.form);
    if (!dialog.open) dialog.show();
    this.#fit();
    input.focus();
    if (input instanceof HTMLTextAreaElement) input.select();
  }

  /** Return what another column of the row has, null also where it is long. @param {string} name */
  #kept(name) {
    const value = this.rows.valueOf(this.place.row, name);
    return value instanceof LongValue ? null : value;
  }

  /** @param {string | null} value that was typed before */
  #restore(value) {
    if (value === null) this.field?.stand(NULL);
    else if (value === "") this.field?.stand(EMPTY);
    else this.field?.write(value);
  }

  /** Put a typed character in the place of the value. @param {string} typed */
  #begin(typed) {
    const input = this.field?.input;
    if (input instanceof HTMLTextAreaElement) {
      input.setSelectionRange(0, input.value.length);
      input.setRangeText(typed, 0, input.value.length, "end");
    } else if (input) {
      const found = [...input.options].findIndex((option) => option.text.toLowerCase().startsWith(typed.toLowerCase()));
      if (found >= 0) input.selectedIndex = found;
    }
    input?.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    // The grid below has keys of its own.
    event.stopPropagation();
    if (event.isComposing) return;
    const isInput = event.target === this.field?.input;
    if (event.key === "Escape") this.#leave();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey || (isInput && !event.shiftKey && !event.altKey))) this.form.requestSubmit();
    else return;
    event.preventDefault();
  }

  /** A press elsewhere leaves a cell that is as it was, and no other. @param {PointerEvent} event */
  #onPointer(event) {
    const { dialog } = this;
    if (!dialog.open || !(event.target instanceof Node) || dialog.contains(event.target)) return;
    if (!this.#isChanged) return this.#end();
    const isCell = event.target !== this.rows.grid.root && this.rows.grid.root.contains(event.target);
    if (!isCell) return;
    event.preventDefault();
    event.stopPropagation();
    this.#isUnsaved();
  }

  /** True if an open cell is not saved; the focus is there then. */
  #isUnsaved() {
    if (!this.dialog.open) return false;
    if (!this.#isChanged) {
      this.#end();
      return false;
    }
    this.field?.input.focus();
    announce("This value is not saved. Enter saves it, Esc leaves it as it was.");
    return true;
  }

  /** Close, give up what was typed, and go back to the cell. */
  #leave() {
    this.draft?.forget();
    this.#end();
    this.rows.grid.root.focus();
  }

  #end() {
    this.dialog.close();
    this.field = null;
  }

  /** @param {string | null | undefined} value */
  async #save(value = null) {
    const { rows, before } = this;
    const { shape } = rows;
    if (!shape || !this.field) return;
    if (value === before) return this.#leave();
    const { row, column } = this.place;
    const of = shape.columns[column];
    checkJson(of, value);
    const version = rows.versions[row] ?? "";
    const queries = update(shape, { key: rows.keyOf(row), version, column: of.name, value });
    const answer = await post("/v1/sql", { queries, rows: "arrays", values: "text" });
    const [done, renamed, kept] = answer.results;
    // Other rows are shown since.
    const isHere = rows.shape === shape && rows.versions[row] === version;
    const now = done.row_count ? renamed.rows[0] : kept.rows[0];
    if (isHere && now) rows.replace(row, now);
    if (done.row_count) {
      this.#leave();
      announce(withNotices(`${of.name} is changed.`, answer));
    } else if (!now) {
      throw new Problem(409, { title: "This row is not there any more: someone deleted it, or changed its key." });
    } else if (now[0] === version) {
      throw new Problem(409, { title: "PostgreSQL kept the row as it is: a trigger or a row security policy refuses the change." });
    } else {
      byId("cell-conflict").textContent =
        `Someone changed this row in the meantime. ${of.name} is now ${said(isHere ? rows.values[row][column] : null)}. Nothing was saved: save again to replace it with yours.`;
      show(byId("cell-conflict"));
      this.#fit();
    }
  }

  /** Put the editor over its cell, as high as its text needs, within the grid. */
  #fit() {
    const { dialog, field } = this;
    const { root } = this.rows.grid;
    const cell = document.getElementById(root.getAttribute("aria-activedescendant") ?? "");
    if (!cell || !field) return;
    const frame = byId("rows-grid").getBoundingClientRect();
    const at = cell.getBoundingClientRect();
    const { input } = field;
    const text = exactValue(input);
    const isLarge = text.length > 60 || text.includes("\n");
    const width = Math.min(frame.width - 2, Math.max(at.width, isLarge ? LARGE_PX : LEAST_PX));
    const left = Math.max(0, Math.min(at.left - frame.left - 1, frame.width - width - 2));
    const [top, bottom] = [at.top - frame.top - 1, frame.bottom - at.bottom - 1];
    dialog.style.width = `${width}px`;
    dialog.style.left = `${left}px`;
    const isAbove = bottom < 160 && top > bottom;
    dialog.classList.toggle("above", isAbove);
    dialog.style.top = isAbove ? "auto" : `${Math.max(0, top - 1)}px`;
    dialog.style.bottom = isAbove ? `${Math.max(0, bottom - 1)}px` : "auto";
    if (!(input instanceof HTMLTextAreaElement)) return;
    input.style.height = "auto";
    const most = Math.min(MOST_PX, (isAbove ? top : bottom) - 70);
    input.style.height = `${Math.max(32, Math.min(most, input.scrollHeight + 2))}px`;
  }
}

/** Return what a sentence says of a value; of a long one that it is not all. @param {import("../grid/values.js").Value} value */
function said(value) {
  if (value === null) return "NULL";
  return value instanceof LongValue ? `“${shownOf(value)}”, the beginning of a value of ${bytes(value.bytes)}` : `“${value}”`;
}

/**
 * @param {Column} column
 * @param {any[]} types
 * @param {string | null} value
 */
function fieldOf(column, types, value) {
  const blanks = column.is_nullable || value === null ? [NULL] : [];
  const cleared = takesEmptyText(column) ? EMPTY : (blanks[0] ?? { label: "", value: "" });
  return new Field(column, types, { value, blanks, cleared });
}
