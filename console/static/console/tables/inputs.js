// @ts-check
/** What a value of a type is typed into, and comes out of byte for byte (lib/exact_text.js). */

import { isJson } from "../grid/values.js";
import { optionOf } from "../lib/dom.js";
import { ExactText, exactValue, setExactValue } from "../lib/exact_text.js";
import { Problem } from "../lib/problem.js";
import { typeOf } from "./shape.js";

/** @typedef {HTMLTextAreaElement | HTMLSelectElement} Input */
/**
 * What is there in place of a text: NULL, an empty text, or the column's default (undefined).
 * @typedef {{label: string, value: string | null | undefined}} Blank
 */

export const NULL = /** @type {Blank} */ ({ label: "NULL", value: null });
export const EMPTY = /** @type {Blank} */ ({ label: "empty text", value: "" });

const ONE_LINE = /^(?:smallint|integer|bigint|real|double precision|numeric|date|time|timestamp|uuid|interval|inet|cidr|macaddr8?|money|oid)(?![\w.])/;
/** Types of whose values none is an empty text. */
const NOT_EMPTY = /^(?:jsonb?|jsonpath|boolean|bit(?:\(\d+\))?)$|range$|\]$/;

/**
 * Return the values that a column can have, [] where there are too many to list.
 * @param {{type: string}} column
 * @param {any[]} types as /v1/sql/schema lists them
 * @returns {string[]}
 */
export function choicesOf(column, types) {
  if (column.type === "boolean") return ["true", "false"];
  return typeOf(column, "enum", types)?.labels ?? [];
}

/** True if a value of the column may have several lines. @param {{type: string}} column */
export function takesLines({ type }) {
  return !ONE_LINE.test(type);
}

/** True if a value of the column may be an empty text. @param {{type: string}} column */
export function takesEmptyText({ type }) {
  return takesLines({ type }) && !NOT_EMPTY.test(type);
}

/** Return what is to be known before a value is typed, '' for most. @param {{type: string}} column */
export function noteOf({ type }) {
  return /with time zone(?:\[\])*$|^tstz(?:multi)?range(?:\[\])*$/.test(type) ? "A time without a zone is read as UTC." : "";
}

/**
 * Refuse a text that is no JSON, where the column takes JSON alone.
 * @param {{name: string, type: string}} column
 * @param {string | null | undefined} value
 * @throws {Problem}
 */
export function checkJson({ name, type }, value) {
  if (!isJson(type) || typeof value !== "string") return;
  try {
    JSON.parse(value);
  } catch (error) {
    throw new Problem(0, { title: `${name} is not valid JSON.`, detail: `${/** @type {Error} */ (error).message}.` });
  }
}

/** A field for a value. While nothing is typed it stands for one of its blanks, which it names. */
export class Field {
  /**
   * @param {import("./shape.js").Column} column
   * @param {any[]} types of the database
   * @param {{value?: string | null, blanks: Blank[], cleared: Blank}} options value: at first; blanks: the first one is there in its place;
   *   cleared: what an emptied field stands for
   */
  constructor(column, types, { value, blanks, cleared }) {
    this.cleared = cleared;
    /** @type {Blank | null} null while a text is typed */
    this.blank = null;
    this.input = inputFor(column, choicesOf(column, types), value ?? null, blanks);
    this.input.addEventListener("input", () => this.#follow());
    if (value === null || value === undefined) this.stand(blanks[0]);
  }

  /** A text, or what is there in its place. */
  get value() {
    return this.blank ? this.blank.value : exactValue(this.input);
  }

  /** @param {string} text */
  write(text) {
    setExactValue(this.input, text);
    this.#follow();
  }

  /** Let the field stand for a blank. @param {Blank} blank */
  stand(blank) {
    const { input } = this;
    this.blank = blank;
    if (input instanceof HTMLTextAreaElement) {
      // Emptied by the user it is as it should be, and undo works.
      if (input.value !== "") setExactValue(input, "");
      input.placeholder = blank.label;
    } else input.selectedIndex = [...input.options].findIndex((option) => blanks.get(option) === blank);
  }

  #follow() {
    const { input } = this;
    if (input instanceof HTMLSelectElement) this.blank = blanks.get(input.selectedOptions[0]) ?? null;
    else if (input.value === "") this.stand(this.cleared);
    else this.blank = null;
  }
}

/** What the first options of a select stand for. @type {WeakMap<HTMLOptionElement, Blank>} */
const blanks = new WeakMap();

/**
 * @param {{type: string}} column
 * @param {string[]} choices
 * @param {string | null} value
 * @param {Blank[]} [offered] before the choices
 * @returns {Input}
 */
export function inputFor(column, choices, value, offered = []) {
  if (choices.length) {
    const select = document.createElement("select");
    // A label that was added since the choices were read is a value, too.
    const all = value === null || choices.includes(value) ? choices : [value, ...choices];
    const first = offered.map((blank) => {
      const option = new Option(blank.label);
      blanks.set(option, blank);
      return option;
    });
    select.append(...first, ...all.map(optionOf));
    // By its place: a blank has its label for a value.
    if (value !== null) select.selectedIndex = first.length + all.indexOf(value);
    return select;
  }
  const area = document.createElement("textarea");
  area.rows = ONE_LINE.test(column.type) ? 1 : 6;
  area.spellcheck = false;
  area.autocapitalize = "none";
  new ExactText(area, value ?? "");
  return area;
}
