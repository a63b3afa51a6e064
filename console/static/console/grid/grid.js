// @ts-check
/**
 * A table of any length and width: only the rows and columns in sight are in the document. Arrow keys,
 * Home, End and the page keys move the active cell (the heads are a row of their own), Shift extends
 * the selection, Enter opens, Ctrl-C copies, Alt with an arrow changes a column's width. A press on a
 * row's number selects and marks the row, with Shift all rows up to it; the corner takes all.
 */

import { element } from "../lib/dom.js";
import { bytes } from "../lib/format.js";
import { Problem } from "../lib/problem.js";
import { announce, tell } from "../lib/status.js";
import { FORMATS, tabbed } from "./copies.js";
import { keyed, moved } from "./keys.js";
import { isNumeric, LongValue, shownOf } from "./values.js";
import { clamped, fitted } from "./widths.js";

/** As in grid.css. */
const ROW_PX = 32;
const OVERSCAN = 6;
/** Columns out of sight that are in the document: a short way to the side draws none. */
const OVERSCAN_PX = 400;
/** More bytes of long values are not read for a copy. */
const MOST_COPIED = 64e6;
const STEP_PX = 24;
/** The active cell's row where it is a column's head. */
export const HEAD = -1;

/** @typedef {import("./values.js").GridColumn} GridColumn */
/** @typedef {import("./values.js").Value} Value */
/** @typedef {import("./keys.js").Place} Place */
/**
 * @typedef {object} Options
 * @property {string} label
 * @property {(place: Place) => void} [onOpen] a cell, or with the row HEAD a column, was opened
 * @property {(place: Place, typed: string) => void} [onType] a character was typed on a cell
 * @property {(rows: Set<number>) => void} [onSelect] rows were marked or unmarked
 */

let grids = 0;

export class Grid {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.id = `grid-${++grids}`;
    /** @type {GridColumn[]} */
    this.columns = [];
    /** @type {Value[][]} */
    this.rows = [];
    /** @type {Set<number>} */
    this.marked = new Set();
    /** The row that was marked last: Shift marks from there. */
    this.lastMarked = 0;
    /** @type {Place} */
    this.active = { row: 0, column: 0 };
    /** @type {Place} the other end of the selection */
    this.anchor = this.active;
    /** @type {number[]} */
    this.widths = [];
    /** Where each column begins, and where the last one ends. @type {number[]} */
    this.edges = [0];
    /** The columns in the document. */
    this.span = { from: 0, to: 0 };
    this.isFitted = false;
    /** @type {Map<number, HTMLElement>} the rows in the document */
    this.shown = new Map();
    this.first = 1;
    this.root = part("grid scroll", "grid");
    this.head = part("grid-head", "row");
    this.body = part("grid-body", "rowgroup");
    const heads = part("", "rowgroup");
    heads.className = "grid-heads";
    heads.append(this.head);
    this.root.classList.toggle("grid-markable", options.onSelect !== undefined);
    this.root.tabIndex = 0;
    this.root.setAttribute("aria-label", options.label);
    this.root.setAttribute("aria-multiselectable", "true");
    this.root.append(heads, this.body);
    this.#listen();
  }

  /**
   * Show rows, from the top.
   * @param {GridColumn[]} columns
   * @param {Value[][]} rows
   * @param {number} [first] the number of the first one
   */
  show(columns, rows, first = 1) {
    const isSame = columns.length === this.columns.length && columns.every((one, at) => one.name === this.columns[at].name);
    this.columns = columns;
    this.rows = rows;
    this.first = first;
    this.marked.clear();
    this.lastMarked = 0;
    this.active = this.anchor = { row: 0, column: isSame ? this.active.column : 0 };
    // Another page of the same rows keeps the widths, which may be the user's.
    if (!isSame || !this.isFitted) this.widths = fitted(columns, rows);
    this.isFitted = rows.length > 0 || (isSame && this.isFitted);
    this.root.setAttribute("aria-rowcount", String(rows.length + 1));
    this.root.setAttribute("aria-colcount", String(columns.length + 1));
    this.head.setAttribute("aria-rowindex", "1");
    this.root.scrollTop = 0;
    this.span = { from: 0, to: 0 };
    this.#resize();
    this.#turn();
    this.draw();
  }

  /**
   * Show another content of a row.
   * @param {number} row
   * @param {Value[]} values
   */
  replace(row, values) {
    this.rows[row] = values;
    this.shown.get(row)?.remove();
    this.shown.delete(row);
    this.draw();
  }

  /** Draw the cells in sight, and take the others out of the document. */
  draw() {
    const [left, right] = this.#sight();
    const { from: leftmost, to: beyond } = this.span;
    if (left < this.edges[leftmost] || right > this.edges[beyond]) this.#turn();
    const height = this.root.clientHeight || 600;
    const from = Math.max(0, Math.floor(this.root.scrollTop / ROW_PX) - OVERSCAN);
    const to = Math.min(this.rows.length, Math.ceil((this.root.scrollTop + height) / ROW_PX) + OVERSCAN);
    for (const [row, line] of this.shown) {
      if (row >= from && row < to) continue;
      line.remove();
      this.shown.delete(row);
    }
    const added = document.createDocumentFragment();
    for (let row = from; row < to; row++) {
      if (this.shown.has(row)) continue;
      const line = this.#lineOf(row);
      this.shown.set(row, line);
      added.append(line);
    }
    this.body.append(added);
    this.#paint();
  }

  /** Return the cells in sight from the left to the right, in pixels of all columns. */
  #sight() {
    const { scrollLeft, clientWidth } = this.root;
    const end = this.edges[this.columns.length];
    return [Math.min(scrollLeft, end), Math.min(scrollLeft + (clientWidth || 1000), end)];
  }

  /** Put the columns in sight and some beside them into the document. */
  #turn() {
    const [left, right] = this.#sight();
    const before = this.edges.findIndex((edge) => edge > left - OVERSCAN_PX) - 1;
    const after = this.edges.findIndex((edge) => edge >= right + OVERSCAN_PX);
    this.span = { from: Math.max(0, before), to: after < 0 ? this.columns.length : after };
    const columns = this.columns.slice(this.span.from, this.span.to);
    this.head.replaceChildren(this.#corner(), ...columns.map((column, at) => this.#headOf(column, this.span.from + at)));
    this.body.replaceChildren();
    this.shown.clear();
    this.#place();
  }

  /**
   * Copy the selection.
   * @param {keyof typeof FORMATS} [format] other than TSV with the names of the columns
   * @returns {Promise<number>} how many rows
   */
  async copy(format = "tsv") {
    const { top, bottom, left, right } = this.selection();
    const columns = this.columns.slice(left, right + 1);
    const rows = await this.whole(this.rows.slice(Math.max(top, 0), bottom + 1).map((row) => row.slice(left, right + 1)));
    // One value is itself, and NULL the word; among several, quotes show where each ends.
    const isOne = rows.length === 1 && columns.length === 1 && top !== HEAD;
    const withoutNames = isOne ? (rows[0][0] ?? "NULL") : rows.map(tabbed).join("\n");
    const text = format === "tsv" && top !== HEAD ? withoutNames : FORMATS[format].write(columns, rows);
    await navigator.clipboard.writeText(text);
    return rows.length;
  }

  /**
   * Return rows whose long values are read.
   * @param {Value[][]} rows
   * @returns {Promise<(string | null)[][]>}
   * @throws {Problem} where they are too long to be copied together
   */
  async whole(rows) {
    const long = /** @type {LongValue[]} */ (rows.flat().filter((value) => value instanceof LongValue));
    const size = long.reduce((sum, value) => sum + value.bytes, 0);
    if (size > MOST_COPIED) throw new Problem(0, { title: `These are ${bytes(size)}, more than can be copied at a time. Open the long values one by one.` });
    if (long.length) announce(`Reading ${bytes(size)} …`);
    return Promise.all(rows.map((row) => Promise.all(row.map((value) => (value instanceof LongValue ? value.whole() : value)))));
  }

  /** Return the selection's edges, all of them included. */
  selection() {
    const { active, anchor } = this;
    return {
      top: Math.min(active.row, anchor.row),
      bottom: Math.max(active.row, anchor.row),
      left: Math.min(active.column, anchor.column),
      right: Math.max(active.column, anchor.column),
    };
  }

  /**
   * Make a cell the active one, and bring it into sight.
   * @param {Place} place
   * @param {boolean} [extends_] the selection up to there
   */
  go(place, extends_ = false) {
    this.active = place;
    if (!extends_) this.anchor = place;
    this.#reveal();
    this.draw();
  }

  #listen() {
    let waits = false;
    this.root.addEventListener("scroll", () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => {
        waits = false;
        this.draw();
      });
    }, { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.root);
    this.root.addEventListener("keydown", (event) => this.#onKey(event));
    this.root.addEventListener("pointerdown", (event) => this.#onPointer(event));
    this.root.addEventListener("dblclick", (event) => {
      if (placeOf(event.target)) this.options.onOpen?.(this.active);
    });
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (this.columns.length === 0) return;
    const key = keyed(event);
    if (key === "open") this.options.onOpen?.(this.active);
    else if (key === "copy") this.copy().then(() => announce("Copied.")).catch(tell);
    else if (key === "all") this.#selectAll();
    else if (key === "mark") this.#mark(this.active.row, event.shiftKey);
    else if (key === "wider" || key === "narrower") this.#widen(this.active.column, key === "wider" ? STEP_PX : -STEP_PX);
    else {
      const page = Math.max(1, Math.floor(this.root.clientHeight / ROW_PX) - 2);
      const to = moved(event, this.active, { rows: this.rows.length, columns: this.columns.length, page });
      const isTyped = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (to) this.go(to, event.shiftKey);
      else if (isTyped && this.active.row !== HEAD && this.options.onType) this.options.onType(this.active, event.key);
      else return;
    }
    event.preventDefault();
  }

  #selectAll() {
    this.anchor = { row: HEAD, column: 0 };
    this.active = { row: this.rows.length - 1, column: this.columns.length - 1 };
    this.draw();
  }

  /** @param {PointerEvent} event */
  #onPointer(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.dataset.grip !== undefined) return this.#drag(event, Number(target.dataset.grip));
    const line = target.closest("[data-row]");
    if (target.role === "rowheader" && line instanceof HTMLElement) return this.#takeRow(Number(line.dataset.row), event.shiftKey);
    if (target.dataset.all !== undefined) return this.#takeAll();
    const place = placeOf(target);
    if (!place) return;
    const { active } = this;
    const isAgain = place.row === active.row && place.column === active.column;
    this.go(place, event.shiftKey);
    // A finger has no double click.
    if (place.row === HEAD || (isAgain && event.pointerType === "touch")) this.options.onOpen?.(place);
    else if (event.pointerType === "mouse") this.#extend();
  }

  /** Extend the selection to where the mouse goes, until it is released. */
  #extend() {
    const over = (/** @type {PointerEvent} */ event) => {
      const place = placeOf(event.target);
      if (place && place.row !== HEAD) this.go(place, true);
    };
    this.root.addEventListener("pointerover", over);
    addEventListener("pointerup", () => this.root.removeEventListener("pointerover", over), { once: true });
  }

  /**
   * Select and mark a row, or all rows from the last one to it.
   * @param {number} row
   * @param {boolean} isRange
   */
  #takeRow(row, isRange) {
    const first = isRange ? this.anchor.row : row;
    this.anchor = { row: first, column: this.columns.length - 1 };
    this.active = { row, column: 0 };
    this.#mark(row, isRange);
    this.draw();
  }

  /** Select and mark all rows; where all are marked, unmark them. */
  #takeAll() {
    this.#selectAll();
    this.#mark(HEAD);
  }

  /**
   * Mark a row, or unmark it.
   * @param {number} row HEAD: all of them
   * @param {boolean} [isRange] all rows from the one that was marked last
   */
  #mark(row, isRange = false) {
    const { marked, options } = this;
    if (!options.onSelect) return;
    const [first, last] = row === HEAD ? [0, this.rows.length - 1] : isRange ? [this.lastMarked, row].sort((a, b) => a - b) : [row, row];
    const range = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    const isUndone = !(isRange && row !== HEAD) && range.every((each) => marked.has(each));
    for (const each of range) isUndone ? marked.delete(each) : marked.add(each);
    this.lastMarked = Math.max(row, 0);
    this.#paint();
    options.onSelect(marked);
  }

  /**
   * @param {PointerEvent} event
   * @param {number} column
   */
  #drag(event, column) {
    const grip = /** @type {HTMLElement} */ (event.target);
    const [start, before] = [event.clientX, this.widths[column]];
    grip.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ to) => {
      this.widths[column] = clamped(before + to.clientX - start);
      this.#resize();
    };
    grip.addEventListener("pointermove", move);
    grip.addEventListener("lostpointercapture", () => grip.removeEventListener("pointermove", move), { once: true });
    event.preventDefault();
  }

  /**
   * @param {number} column
   * @param {number} by
   */
  #widen(column, by) {
    this.widths[column] = clamped(this.widths[column] + by);
    this.#resize();
  }

  #resize() {
    this.edges = [0];
    for (const width of this.widths) this.edges.push(this.edges[this.edges.length - 1] + width);
    const width = this.#gutter() + this.edges[this.columns.length];
    this.root.style.setProperty("--width", `${width}px`);
    this.root.style.setProperty("--height", `${this.rows.length * ROW_PX}px`);
    this.#place();
  }

  /** Place the columns that are in the document: after the numbers, and what is left of the first one. */
  #place() {
    const { from, to } = this.span;
    const tracks = [this.#gutter(), this.edges[from], ...this.widths.slice(from, to)];
    this.root.style.setProperty("--columns", tracks.map((one) => `${one}px`).join(" "));
  }

  #gutter() {
    return (this.options.onSelect ? 44 : 20) + 9 * String(this.first + this.rows.length).length;
  }

  #corner() {
    const cell = part("grid-cell grid-number", "columnheader");
    cell.setAttribute("aria-colindex", "1");
    cell.dataset.all = "";
    cell.title = this.options.onSelect ? "Mark all rows, or none" : "Select all";
    const name = element("span", "Row");
    name.className = "visually-hidden";
    cell.append(name);
    return cell;
  }

  /**
   * @param {GridColumn} column
   * @param {number} at
   */
  #headOf(column, at) {
    const cell = part("grid-cell", "columnheader");
    cell.id = `${this.id}-head-${at}`;
    cell.setAttribute("aria-colindex", String(at + 2));
    if (column.sort) cell.setAttribute("aria-sort", column.sort);
    cell.dataset.column = String(at);
    const name = element("span", column.name);
    name.className = "grid-name";
    const { declared = column.type } = column;
    const type = element("span", column.mark ? `${column.mark} ${declared}` : declared);
    type.className = "grid-type";
    const grip = element("span");
    grip.className = "grid-grip";
    grip.dataset.grip = String(at);
    cell.title = `${column.name}: ${declared}`;
    cell.append(name, type, grip);
    return cell;
  }

  /** @param {number} row */
  #lineOf(row) {
    const line = part("grid-row", "row");
    line.dataset.row = String(row);
    line.setAttribute("aria-rowindex", String(row + 2));
    line.style.transform = `translateY(${row * ROW_PX}px)`;
    const number = part("grid-cell grid-number", "rowheader");
    number.textContent = String(this.first + row);
    line.append(number);
    const values = this.rows[row];
    for (let at = this.span.from; at < this.span.to; at++) {
      const value = values[at];
      const cell = part("grid-cell", "gridcell");
      cell.id = `${this.id}-${row}-${at}`;
      cell.setAttribute("aria-colindex", String(at + 2));
      cell.dataset.column = String(at);
      const isWord = value === null || value === "" || value instanceof LongValue;
      if (isWord) cell.append(wordOf(value));
      if (value !== null && value !== "") cell.append(shownOf(value));
      if (isNumeric(this.columns[at].type)) cell.classList.add("grid-numeric");
      line.append(cell);
    }
    return line;
  }

  /** Show which cells are selected and which rows are marked. */
  #paint() {
    const { top, bottom, left, right } = this.selection();
    for (const [row, line] of this.shown) {
      line.setAttribute("aria-selected", String(this.marked.has(row)));
      const isIn = row >= top && row <= bottom;
      if (!isIn && line.dataset.painted === undefined) continue;
      for (let at = this.span.from; at < this.span.to; at++) {
        const cell = /** @type {HTMLElement} */ (line.children[at - this.span.from + 1]);
        const isSelected = isIn && at >= left && at <= right;
        if (isSelected) cell.setAttribute("aria-selected", "true");
        else cell.removeAttribute("aria-selected");
        cell.classList.toggle("grid-active", row === this.active.row && at === this.active.column);
      }
      if (isIn) line.dataset.painted = "";
      else delete line.dataset.painted;
    }
    const { row, column } = this.active;
    const { from, to } = this.span;
    for (let at = from; at < to; at++) {
      this.head.children[at - from + 1].classList.toggle("grid-active", row === HEAD && at === column);
    }
    this.root.classList.toggle("grid-all-marked", this.rows.length > 0 && this.marked.size === this.rows.length);
    const id = row === HEAD ? `${this.id}-head-${column}` : `${this.id}-${row}-${column}`;
    if (row === HEAD || this.shown.has(row)) this.root.setAttribute("aria-activedescendant", id);
    else this.root.removeAttribute("aria-activedescendant");
  }

  /** Scroll until the active cell is in sight. */
  #reveal() {
    const { row, column } = this.active;
    const { root, head } = this;
    if (row !== HEAD) {
      const space = root.clientHeight - head.offsetHeight;
      if (row * ROW_PX < root.scrollTop) root.scrollTop = row * ROW_PX;
      else if ((row + 1) * ROW_PX > root.scrollTop + space) root.scrollTop = (row + 1) * ROW_PX - space;
    }
    const gutter = /** @type {HTMLElement} */ (head.firstElementChild).offsetWidth;
    const left = this.edges[column];
    const room = root.clientWidth - gutter;
    if (left < root.scrollLeft) root.scrollLeft = left;
    else if (left + this.widths[column] > root.scrollLeft + room) root.scrollLeft = left + this.widths[column] - room;
  }
}

/**
 * @param {string} name
 * @param {string} role
 */
function part(name, role) {
  const made = document.createElement("div");
  made.className = name;
  made.setAttribute("role", role);
  return made;
}

/**
 * Return a word of the page, which does not look like a value: what there is instead of a text, or how
 * much of it.
 * @param {Value} value
 */
function wordOf(value) {
  const word = element("span", value instanceof LongValue ? bytes(value.bytes) : shownOf(value));
  word.className = value instanceof LongValue ? "grid-word grid-size" : "grid-word";
  return word;
}

/**
 * Return the place of a cell or head, null for anything else.
 * @param {EventTarget | null} target
 * @returns {Place | null}
 */
function placeOf(target) {
  const cell = target instanceof Element ? target.closest("[data-column]") : null;
  if (!(cell instanceof HTMLElement)) return null;
  const line = cell.closest("[data-row]");
  const row = line instanceof HTMLElement ? Number(line.dataset.row) : HEAD;
  return { row, column: Number(cell.dataset.column) };
}
