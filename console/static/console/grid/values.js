// @ts-check
/** Values of a result as text: in a cell, in the drawer, in a file. */

/** @typedef {{name: string, type: string}} Column */
/** @typedef {Column & {mark?: string, sort?: "ascending" | "descending"}} GridColumn */

/** A cell shows no more of a long value; the drawer has all of it. */
const CELL_CHARACTERS = 300;
/** As results name types, and as tables' definitions do. */
const NUMERIC = /^(?:int[248]|float[48]|numeric|oid|money|smallint|integer|bigint|real|double precision)(?:\(|$)/;

/**
 * Return a value as text, null as "".
 * @param {unknown} value
 * @returns {string}
 */
export function textOf(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * Return what a cell shows of a value: one line, and not all of a long one.
 * @param {unknown} value
 */
export function shownOf(value) {
  if (value === null || value === undefined) return "NULL";
  const text = textOf(value);
  if (text === "") return "empty";
  const cut = text.length > CELL_CHARACTERS ? `${text.slice(0, CELL_CHARACTERS)}…` : text;
  return cut.replace(/[\n\r\t]+/g, " ");
}

/**
 * Return a value for reading: JSON with indentation.
 * @param {unknown} value
 * @param {string} type
 */
export function readableOf(value, type) {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "object") return JSON.stringify(value, null, 2);
  if (!type.startsWith("json")) return String(value);
  try {
    return JSON.stringify(JSON.parse(String(value)), null, 2);
  } catch {
    return String(value);
  }
}

/** @param {string} type */
export function isNumeric(type) {
  return NUMERIC.test(type);
}

/**
 * Return rows as tab-separated lines, as spreadsheets paste them.
 * @param {unknown[][]} rows
 */
export function tabbed(rows) {
  const quoted = (/** @type {string} */ text) => (/[\t\n\r"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((row) => row.map((value) => quoted(textOf(value))).join("\t")).join("\n");
}

/**
 * Return rows as CSV, in the form in which the API streams it: NULL is empty, an empty text `""`.
 * @param {Column[]} columns
 * @param {unknown[][]} rows
 */
export function csv(columns, rows) {
  const lines = [columns.map((column) => column.name), ...rows];
  return lines.map((line) => `${line.map(csvOf).join(",")}\n`).join("");
}

/** @param {unknown} value */
function csvOf(value) {
  if (value === null || value === undefined) return "";
  const text = textOf(value);
  return text === "" || /[",\n\r]|^\\\.$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Return rows as a JSON object in each line; a second column of one name is `name_2`.
 * @param {Column[]} columns
 * @param {unknown[][]} rows
 */
export function ndjson(columns, rows) {
  const keys = columns.map((column) => ("key" in column ? String(column.key) : column.name));
  const lines = rows.map((row) => {
    const pairs = keys.map((key, index) => `${JSON.stringify(key)}:${JSON.stringify(row[index])}`);
    return `{${pairs.join(",")}}\n`;
  });
  return lines.join("");
}
