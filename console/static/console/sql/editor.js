// @ts-check
/**
 * The place where SQL is written: a text area immediately, the code editor as soon as it is loaded.
 * A computer loads it with the page; a phone, where it would delay the first view, at the first touch.
 */

import { within } from "../lib/dom.js";
import { ExactText, exactOffset } from "../lib/exact_text.js";
import { statementsOf } from "./lexer.js";

/** As the template has it, which lets the browser fetch the editor early. */
const WITH_THE_PAGE = matchMedia("(width >= 900px) and (pointer: fine)");

/** @typedef {{from: number, text: string}} Part of the text, and where it begins */
/** @typedef {{text: string, onRun: () => void, onRunStatement: () => void, onSave: () => void, onChange: (text: string) => void, onSelect: (isSelected: boolean) => void}} Options */
/** @typedef {import("./code_editor.js").CodeEditor} CodeEditor */

export class Editor {
  /**
   * @param {HTMLElement} place with a text area inside
   * @param {Options} options
   */
  constructor(place, options) {
    this.place = place;
    this.options = options;
    this.area = /** @type {HTMLTextAreaElement} */ (within(place, "textarea"));
    this.exact = new ExactText(this.area, options.text);
    this.isComposing = false;
    /** @type {CodeEditor | null} */
    this.code = null;
    /** @type {Promise<void> | null} */
    this.loading = null;
    /** @type {any[]} for the completion */
    this.tables = [];
    this.#listen();
  }

  #listen() {
    const { area, options } = this;
    area.addEventListener("input", () => this.#changed());
    document.addEventListener("selectionchange", () => {
      if (!this.code) options.onSelect(this.hasSelection);
    });
    area.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      const run = event.shiftKey ? options.onRunStatement : options.onRun;
      const action = { Enter: run, s: options.onSave }[event.key];
      if (!action) return;
      event.preventDefault();
      if (!event.repeat) action();
    });
    // Replaced in the middle of a word, the area would lose what the keyboard composes.
    area.addEventListener("compositionstart", () => (this.isComposing = true));
    area.addEventListener("compositionend", () => (this.isComposing = false));
    for (const event of ["pointerdown", "focus"]) area.addEventListener(event, () => void this.load());
  }

  /** Load the editor where that does not delay the page. */
  async begin() {
    if (WITH_THE_PAGE.matches) await this.load();
  }

  /** Put the editor in the text area's place. */
  load() {
    this.loading ??= this.#replaceArea();
    return this.loading;
  }

  async #replaceArea() {
    let CodeEditor;
    try {
      ({ CodeEditor } = await import("./code_editor.js"));
    } catch {
      // Not reached: the text area does without, and the next touch tries again, where the browser does.
      document.documentElement.dataset.failed = "";
      this.loading = null;
      return;
    }
    if (this.isComposing) await new Promise((done) => this.area.addEventListener("compositionend", done, { once: true }));
    const { text } = this;
    const [anchor, head] = this.#selected(text);
    this.code = new CodeEditor(this.place, this.area, { ...this.options, text, anchor, head });
    this.area.remove();
    this.code.complete(this.tables);
  }

  get text() {
    return this.code?.text ?? this.exact.text;
  }

  /**
   * Replace the whole text; in the editor, undo brings it back.
   * @param {string} text
   */
  replace(text) {
    if (this.code) return this.code.replace(text);
    this.#write(text, 0, this.area.value.length);
  }

  /**
   * Put a text where the cursor is.
   * @param {string} text
   */
  insert(text) {
    if (this.code) return this.code.insert(text);
    this.#write(text, this.area.selectionStart, this.area.selectionEnd);
  }

  /**
   * @param {string} text
   * @param {number} from
   * @param {number} to
   */
  #write(text, from, to) {
    this.exact.splice(text, from, to);
    this.#changed();
    this.area.focus();
  }

  #changed() {
    this.options.onChange(this.text);
    this.options.onSelect(this.hasSelection);
  }

  /** Return the selection's edges, the first one first. @param {string} text */
  #selected(text) {
    if (this.code) return this.code.selected;
    return [this.area.selectionStart, this.area.selectionEnd].map((offset) => exactOffset(text, offset));
  }

  get hasSelection() {
    const { text } = this;
    const [from, to] = this.#selected(text);
    return text.slice(from, to).trim() !== "";
  }

  /** Return the selected text, else all of it. @returns {Part} */
  chosen() {
    const { text } = this;
    const [from, to] = this.#selected(text);
    return this.hasSelection ? { from, text: text.slice(from, to) } : { from: 0, text };
  }

  /** True if a part begins or ends inside of a statement. @param {Part} part */
  isCut({ from, text }) {
    const to = from + text.length;
    return statementsOf(this.text).some((one) => {
      const end = this.text[one.to - 1] === ";" ? one.to - 1 : one.to;
      return one.from < to && end > from && (one.from < from || this.text.slice(to, end).trim() !== "");
    });
  }

  /**
   * Return the selected text, else the statement at the cursor, or the only one; null where there is
   * none: between two statements neither is meant.
   * @returns {Part | null}
   */
  statement() {
    if (this.hasSelection) return this.chosen();
    const { text } = this;
    const [at] = this.#selected(text);
    const all = statementsOf(text);
    // Where one ends and the next begins, it is the next.
    const one = all.length === 1 ? all[0] : all.findLast(({ from, to }) => from <= at && at <= to);
    return one ? { from: one.from, text: text.slice(one.from, one.to) } : null;
  }

  /** Mark what runs. @param {Part} part */
  async markRun(part) {
    await this.load();
    this.code?.markRun(part);
  }

  /**
   * Mark an error in a text that was run, with its sentence below the line: at its position, else at the
   * beginning of its statement.
   * @param {Part} part
   * @param {{position?: number, statement?: number}} place in it, from 1; the position in characters, as PostgreSQL counts
   * @param {string} sentence
   */
  async mark(part, { position, statement }, sentence) {
    const { text } = part;
    // Characters beyond the basic plane are two in JavaScript, and one in PostgreSQL.
    const at = position ? [...text].slice(0, position - 1).join("").length : statementsOf(text)[(statement ?? 0) - 1]?.from;
    if (at === undefined) return;
    await this.load();
    this.code?.mark(part, at, sentence);
  }

  /** Close the list of completions, which may lie over the results. */
  closeList() {
    this.code?.closeList();
  }

  clearMark() {
    this.code?.clearMark();
  }

  /** @param {any[]} tables as /v1/sql/schema lists them */
  complete(tables) {
    this.tables = tables;
    this.code?.complete(tables);
  }
}
