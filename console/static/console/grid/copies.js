// @ts-check
/**
 * Rows as text for other programs. Each function takes columns and rows, whose values are
 * PostgreSQL's text (null is NULL), and writes all of it: values that are not read yet have to be
 * read before.
 */

import { isJson } from "./values.js";

/** @typedef {import("./values.js").Column} Column */
/** @typedef {(string | null)[]} Row */

/** A number as JSON has it: PostgreSQL's NaN and Infinity are none. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/;
const NUMBER_TYPE = /^(?:int[248]|float[48]|numeric|oid|smallint|integer|bigint|real|double precision)(?:\(|$)/;

/** The formats of copies and files, by the ending of a file's name. */
export const FORMATS = /** @type {const} */ ({
  tsv: { name: "TSV", type: "text/tab-separated-values", write: tsv },
  csv: { name: "CSV", type: "text/csv", write: csv },
  json: { name: "JSON", type: "application/json", write: json },
  ndjson: { name: "NDJSON", type: "application/x-ndjson", write: ndjson },
  md: { name: "Markdown", type: "text/markdown", write: markdown },
});

/**
 * Return tab-separated lines, as spreadsheets paste them: NULL is nothing, an empty text `""`.
 * @param {Column[]} columns
 * @param {Row[]} rows
 */
export function tsv(columns, rows) {
  return [columns.map((column) => column.name), ...rows].map(tabbed).join("\n");
}

/** Return one line of `tsv`. @param {Row} row */
export function tabbed(row) {
  return row.map((value) => separated(value, /[\t\n\r"]/)).join("\t");
}

/**
 * Return CSV in the form in which the API streams and imports it: NULL is empty, an empty text `""`.
 * @param {Column[]} columns
 * @param {Row[]} rows
 */
export function csv(columns, rows) {
  const lines = [columns.map((column) => column.name), ...rows];
  return lines.map((line) => `${line.map((value) => separated(value, /[",\n\r]|^\\\.$/)).join(",")}\n`).join("");
}

/**
 * @param {string | null} value
 * @param {RegExp} quoted what a value holds that must be in quotes
 */
function separated(value, quoted) {
  if (value === null) return "";
  return value === "" || quoted.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

/**
 * Return a JSON array of objects, a line each. Numbers and JSON documents are written as they are,
 * with all digits, members and blanks; every other value is a string.
 * @param {Column[]} columns
 * @param {Row[]} rows
 */
export function json(columns, rows) {
  return rows.length ? `[\n${objects(columns, rows).join(",\n")}\n]\n` : "[]\n";
}

/**
 * Return a JSON object in each line.
 * @param {Column[]} columns
 * @param {Row[]} rows
 */
export function ndjson(columns, rows) {
  // In JSON a line break is never inside of a string.
  return objects(columns, rows).map((object) => `${object.replace(/[\n\r]+/g, " ")}\n`).join("");
}

/**
 * @param {Column[]} columns
 * @param {Row[]} rows
 */
function objects(columns, rows) {
  const keys = columns.map((column) => JSON.stringify(column.key ?? column.name));
  return rows.map((row) => `{${row.map((value, at) => `${keys[at]}:${jsonOf(value, columns[at].type)}`).join(",")}}`);
}

/**
 * @param {string | null} value
 * @param {string} type
 */
function jsonOf(value, type) {
  if (value === null) return "null";
  const isBare = isJson(type) || type === "bool" || type === "boolean";
  return isBare || (NUMBER_TYPE.test(type) && JSON_NUMBER.test(value)) ? value : JSON.stringify(value);
}

/**
 * Return a table as GitHub's Markdown has it; numbers are on the right.
 * @param {Column[]} columns
 * @param {Row[]} rows
 */
export function markdown(columns, rows) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(" | ")} |\n`;
  const marks = columns.map((column) => (NUMBER_TYPE.test(column.type) ? "---:" : "---"));
  const heads = line(columns.map((column) => escaped(column.name))) + line(marks);
  return heads + rows.map((row) => line(row.map((value) => (value === null ? "*NULL*" : escaped(value))))).join("");
}

/** Keep a text from being read as Markdown. @param {string} text */
function escaped(text) {
  return text
    .replace(/[\\`*<&|[\]~]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "\\$&")
    .replace(/\r\n|\r|\n/g, "<br>")
    .replace(/\t/g, " ");
}
