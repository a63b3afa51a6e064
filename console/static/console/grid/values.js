// @ts-check
/** Values of a result, which are PostgreSQL's text: in a cell, in the drawer. */

/** @typedef {{name: string, type: string, key?: string}} Column key: its name in objects, if two columns share one */
/** @typedef {Column & {declared?: string, mark?: string, sort?: "ascending" | "descending"}} GridColumn declared: what is shown as its type */
/** @typedef {string | null | LongValue} Value PostgreSQL's text, null for NULL */

/** A cell shows no more of a long value; the drawer has all of it. */
const CELL_CHARACTERS = 300;
/** As results name types, and as tables' definitions do. */
const NUMERIC = /^(?:int[248]|float[48]|numeric|oid|money|smallint|integer|bigint|real|double precision)(?:\(|$)/;
/** Of a string, a bracket, or anything else of a JSON document. */
const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[^\s"{}[\],:]+/g;
/** What is nested deeper is not indented further: each line would be longer than the one before. */
const MOST_INDENTED = 40;

/** A value of which the page has only the beginning. */
export class LongValue {
  /**
   * @param {string} start
   * @param {number} bytes of the whole value
   * @param {(from: number, most?: number) => Promise<string>} piece returns some characters from a place, counted from 0, "" after the last one
   */
  constructor(start, bytes, piece) {
    this.start = start;
    this.bytes = bytes;
    this.piece = piece;
  }

  /** Return all of it. @returns {Promise<string>} */
  async whole() {
    const pieces = [];
    let characters = 0;
    for (let piece = await this.piece(0); piece !== ""; piece = await this.piece(characters)) {
      pieces.push(piece);
      characters += charactersOf(piece);
    }
    return pieces.join("");
  }
}

/** Return how many characters PostgreSQL counts: one beyond U+FFFF is one. @param {string} text */
export function charactersOf(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

/**
 * Return a value as text, null as "", a long one as far as it is known.
 * @param {Value} value
 */
export function textOf(value) {
  return value instanceof LongValue ? value.start : (value ?? "");
}

/**
 * Return what a cell shows of a value: one line, and not all of a long one.
 * @param {Value} value
 */
export function shownOf(value) {
  if (value === null) return "NULL";
  const text = textOf(value);
  if (text === "" && !(value instanceof LongValue)) return "empty";
  const isCut = value instanceof LongValue || text.length > CELL_CHARACTERS;
  const cut = isCut ? `${text.slice(0, CELL_CHARACTERS)}…` : text;
  return cut.replace(/[\n\r\t]+/g, " ");
}

/**
 * Return a JSON document with a line for each member. JSON.parse would change it: numbers lose
 * digits, members their order and their repetitions.
 * @param {string} json
 */
export function indented(json) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, MOST_INDENTED))}`;
  const written = (/** @type {string} */ token) => {
    if (token === ",") return token + line();
    if (token === ":") return ": ";
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    else return /^[{[]/.test(token) ? token[0] + token.slice(-1) : token;
    return token === "{" || token === "[" ? token + line() : line() + token;
  };
  return (json.match(JSON_TOKEN) ?? []).map(written).join("");
}

/** True for a document of JSON; an array of them and a path into one are none. @param {string} type */
export function isJson(type) {
  return type === "json" || type === "jsonb";
}

/** @param {string} type */
export function isNumeric(type) {
  return NUMERIC.test(type);
}
