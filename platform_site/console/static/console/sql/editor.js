// @ts-check
/**
 * The place where SQL is written: a text area immediately, the code editor as soon as it is loaded.
 * A computer loads it with the page; a phone, where it would delay the first view, at the first touch.
 */

import { within } from "../lib/dom.js";

/** As the template has it, which lets the browser fetch the editor early. */
const WITH_THE_PAGE = matchMedia("(width >= 900px) and (pointer: fine)");

/** @typedef {{from: number, text: string}} Part of the text, and where it begins */
/** @typedef {import("./code_editor.js").CodeEditor} CodeEditor */

export class Editor {
  /**
   * @param {HTMLElement} place with a text area inside
   * @param {{text: string, onRun: () => void, onSave: () => void, onChange: (text: string) => void}} options
   */
  constructor(place, options) {
    this.place = place;
    this.options = options;
    this.area = /** @type {HTMLTextAreaElement} */ (within(place, "textarea"));
    this.area.value = options.text;
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
    area.addEventListener("input", () => options.onChange(area.value));
    area.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      const action = { Enter: options.onRun, s: options.onSave }[event.key];
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
      // Not reached: the text area does without, and the next touch tries again.
      this.loading = null;
      return;
    }
    if (this.isComposing) await new Promise((done) => this.area.addEventListener("compositionend", done, { once: true }));
    this.code = new CodeEditor(this.place, this.area, this.options);
    this.area.remove();
    this.code.complete(this.tables);
  }

  get text() {
    return this.code?.text ?? this.area.value;
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
    this.area.setRangeText(text, from, to, "end");
    this.options.onChange(this.area.value);
    this.area.focus();
  }

  /** Return the selected text, else all of it. @returns {Part} */
  chosen() {
    if (this.code) return this.code.chosen();
    const { selectionStart: from, selectionEnd: to, value } = this.area;
    const selected = value.slice(from, to);
    return selected.trim() ? { from, text: selected } : { from: 0, text: value };
  }

  /** Return the selected text, else the statement at the cursor, which the editor finds. @returns {Promise<Part>} */
  async statement() {
    await this.load();
    return this.code?.statement() ?? this.chosen();
  }

  /**
   * Mark an error in a text that was run, with its sentence below the line.
   * @param {Part} part
   * @param {number} position in it, in characters and from 1, as PostgreSQL counts
   * @param {string} sentence
   */
  async mark(part, position, sentence) {
    await this.load();
    this.code?.mark(part, position, sentence);
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
