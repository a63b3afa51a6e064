// @ts-check
/**
 * The statements of the Tables page. Names are quoted, values are parameters. Values are read as
 * PostgreSQL's text (the request has "values": "text"): JSON numbers would round, and what is written
 * back must be what was there. Long values are read in part, those of a key as a whole: it finds rows.
 */

import { LongValue } from "../grid/values.js";
import { qualified, quoted } from "../lib/identifiers.js";
import { piece, selected } from "../lib/long_values.js";

/** Columns are named as the table's: ORDER BY would take a bare name for the text that is read. */
const ROW = "r";
const own = (/** @type {string} */ name) => `${ROW}.${quoted(name)}`;

/** @typedef {import("./shape.js").Shape} Shape */
/** @typedef {{query: string, params: unknown[]}} Statement */
/** @typedef {{column: string, operator: keyof typeof OPERATORS, value: string}} Filter */
/** @typedef {{column: string, descending: boolean}} Sort */
/** @typedef {{key: (string | null)[], sort: import("../grid/values.js").Value}} Cursor the row after which a page begins */
/** @typedef {{schema: string, table: string, columns: string[]}} Reference of a foreign key */

export const OPERATORS = /** @type {const} */ ({
  "=": "is",
  "<>": "is not",
  "<": "less than",
  "<=": "at most",
  ">": "more than",
  ">=": "at least",
  contains: "contains",
  starts: "starts with",
  null: "is NULL",
  "not null": "is not NULL",
});
/** Further than that what has neither a key nor a place is not read: the server would read all before it. */
export const MOST_SKIPPED = 10_000;
const LOOKED_UP = 8;
const LABEL_CHARACTERS = 80;

class Parameters {
  constructor() {
    /** @type {unknown[]} */
    this.values = [];
  }

  /** Return the placeholder of a value. @param {unknown} value */
  add(value) {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}

/**
 * Read a page of rows: the version (or place) of a row first, then the columns.
 * after: where the page begins; skipped: how many rows are before it, where that is not known.
 * @param {Shape} shape
 * @param {{filters: Filter[], sort: Sort | null, after: Cursor | null, skipped: number, limit: number, most?: number}} wanted
 *   most: bytes of a value that are read
 * @returns {Statement}
 */
export function browse(shape, { most, ...wanted }) {
  return rowsOf(shape, listOf(shape, most), wanted);
}

/**
 * Read a piece of a value, with what tells whether it is still of the row that was seen: the row's
 * version and the value's beginning.
 * @param {Shape} shape
 * @param {number} column
 * @param {{key: (string | null)[], version: string | null, view: {filters: Filter[], sort: Sort | null}, skipped: number}} row
 *   view and skipped: find the row where it has neither a key nor a place
 * @param {number} from a character, counted from 0
 * @param {number} [most] characters
 * @returns {Statement}
 */
export function readPiece(shape, column, { key, version, view, skipped }, from, most) {
  const source = sourcesOf(shape)[column];
  const list = `${versionOf(shape)}, ${piece(source, from, most)}, ${selected([source])}`;
  if (shape.paging === "offset") return rowsOf(shape, list, { ...view, after: null, skipped, limit: 1 });
  const parameters = new Parameters();
  const where = isCursor(shape, { key: shape.paging === "key" ? key : [version] }, parameters);
  return { query: `SELECT ${list} FROM ${qualified(shape.table)} AS ${ROW} WHERE ${where}`, params: parameters.values };
}

/**
 * @param {Shape} shape
 * @param {string} list what is selected
 * @param {{filters: Filter[], sort: Sort | null, after: Cursor | null, skipped: number, limit: number}} wanted
 * @returns {Statement}
 */
function rowsOf(shape, list, { filters, sort, after, skipped, limit }) {
  const parameters = new Parameters();
  const conditions = filters.map((filter) => condition(filter, parameters));
  if (after) conditions.push(beyond(shape, sort, after, parameters));
  const order = [...(sort ? [`${own(sort.column)} ${sort.descending ? "DESC" : "ASC"} NULLS LAST`] : []), ...orderOf(shape)];
  const parts = [
    `SELECT ${list} FROM ${qualified(shape.table)} AS ${ROW}`,
    conditions.length ? `WHERE ${conditions.join(" AND ")}` : "",
    order.length ? `ORDER BY ${order.join(", ")}` : "",
    `LIMIT ${limit}`,
    skipped ? `OFFSET ${skipped}` : "",
  ];
  return { query: parts.filter(Boolean).join(" "), params: parameters.values };
}

/**
 * Count the rows that fit.
 * @param {Shape} shape
 * @param {Filter[]} filters
 * @returns {Statement}
 */
export function countRows(shape, filters) {
  const parameters = new Parameters();
  const conditions = filters.map((filter) => condition(filter, parameters));
  const where = conditions.length ? ` WHERE ${conditions.join(" AND ")}` : "";
  return { query: `SELECT count(*) FROM ${qualified(shape.table)} AS ${ROW}${where}`, params: parameters.values };
}

/**
 * Change one value of the row that still has the version that was seen, then read the row.
 * @param {Shape} shape
 * @param {{key: (string | null)[], version: string, column: string, value: string | null}} change
 * @returns {Statement[]}
 */
export function update(shape, { key, version, column, value }) {
  const parameters = new Parameters();
  const set = `${quoted(column)} = ${parameters.add(value)}`;
  const where = `${isRow(shape, key, parameters)} AND ${ROW}.xmin::text = ${parameters.add(version)}`;
  const changed = key.map((part, at) => (shape.key[at] === column ? value : part));
  return [
    { query: `UPDATE ${qualified(shape.table)} AS ${ROW} SET ${set} WHERE ${where}`, params: parameters.values },
    // By the new key where the key was changed, and by the old one where it could not be.
    readRow(shape, changed),
    readRow(shape, key),
  ];
}

/**
 * Delete the row that still has the version that was seen.
 * @param {Shape} shape
 * @param {(string | null)[]} key
 * @param {string} version
 * @returns {Statement}
 */
export function remove(shape, key, version) {
  const parameters = new Parameters();
  const where = `${isRow(shape, key, parameters)} AND ${ROW}.xmin::text = ${parameters.add(version)}`;
  return { query: `DELETE FROM ${qualified(shape.table)} AS ${ROW} WHERE ${where}`, params: parameters.values };
}

/**
 * Insert a row; columns that are not named get their defaults.
 * @param {Shape} shape
 * @param {Map<string, string | null>} values
 * @returns {Statement}
 */
export function insert(shape, values) {
  const into = `INSERT INTO ${qualified(shape.table)}`;
  if (values.size === 0) return { query: `${into} DEFAULT VALUES`, params: [] };
  const parameters = new Parameters();
  const places = [...values.values()].map((value) => parameters.add(value));
  const names = [...values.keys()].map(quoted);
  return { query: `${into} (${names.join(", ")}) VALUES (${places.join(", ")})`, params: parameters.values };
}

/**
 * Find rows that a foreign key may refer to: the values that it would have, and what describes them.
 * @param {Reference} reference
 * @param {{at: number, known: (string | null)[], labels: string[], typed: string}} wanted at: the column
 *   that is asked for; known: values that the others have to have, by column, null for any; labels:
 *   further columns; typed: the beginning of the value, or a part of what describes the row
 * @returns {Statement}
 */
export function lookUp({ schema, table, columns }, { at, known, labels, typed }) {
  const parameters = new Parameters();
  const escaped = escapedLike(typed);
  const values = columns.map((name) => `${own(name)}::text`);
  const label = labels.length ? `left(concat_ws(' · ', ${labels.map((name) => `${own(name)}::text`).join(", ")}), ${LABEL_CHARACTERS})` : "''";
  const fits = [`${values[at]} ILIKE ${parameters.add(`${escaped}%`)}`];
  if (labels.length) fits.push(`${label} ILIKE ${parameters.add(`%${escaped}%`)}`);
  const conditions = [`(${fits.join(" OR ")})`];
  known.forEach((value, other) => value !== null && conditions.push(`${own(columns[other])} = ${parameters.add(value)}`));
  const query = `SELECT ${values.join(", ")}, ${label} FROM ${qualified({ schema, name: table })} AS ${ROW} WHERE ${conditions.join(" AND ")} ORDER BY ${own(columns[at])} LIMIT ${LOOKED_UP}`;
  return { query, params: parameters.values };
}

/**
 * @param {Shape} shape
 * @param {(string | null)[]} key
 * @returns {Statement}
 */
function readRow(shape, key) {
  const parameters = new Parameters();
  const where = isRow(shape, key, parameters);
  return { query: `SELECT ${listOf(shape)} FROM ${qualified(shape.table)} AS ${ROW} WHERE ${where}`, params: parameters.values };
}

/**
 * @param {Shape} shape
 * @param {number} [most]
 */
function listOf(shape, most) {
  return `${versionOf(shape)}, ${selected(sourcesOf(shape), most)}`;
}

/** @param {Shape} shape */
function versionOf(shape) {
  return { key: `${ROW}.xmin`, place: `${ROW}.ctid`, offset: "NULL" }[shape.paging];
}

/**
 * Return the columns as they are read.
 * @param {Shape} shape
 * @returns {import("../lib/long_values.js").Source[]}
 */
export function sourcesOf(shape) {
  return shape.columns.map(({ name, type }) => ({ expression: own(name), type, isWhole: shape.key.includes(name) }));
}

/** @param {Shape} shape */
function orderOf(shape) {
  if (shape.paging === "place") return [`${ROW}.ctid`];
  return shape.key.map(own);
}

/**
 * @param {Shape} shape
 * @param {(string | null)[]} key
 * @param {Parameters} parameters
 */
function isRow(shape, key, parameters) {
  return shape.key.map((name, at) => `${own(name)} = ${parameters.add(key[at])}`).join(" AND ");
}

/**
 * Return the condition for rows after a cursor, in the order of `browse`.
 * @param {Shape} shape
 * @param {Sort | null} sort
 * @param {Cursor} after
 * @param {Parameters} parameters
 */
function beyond(shape, sort, after, parameters) {
  const places = after.key.map((part) => parameters.add(part) + (shape.paging === "place" ? "::tid" : ""));
  const later = `(${orderOf(shape).join(", ")}) > (${places.join(", ")})`;
  if (!sort) return later;
  const name = own(sort.column);
  // NULL is last in both directions.
  if (after.sort === null) return `(${name} IS NULL AND ${later})`;
  const value = after.sort instanceof LongValue ? `(SELECT ${name} FROM ${qualified(shape.table)} AS ${ROW} WHERE ${isCursor(shape, after, parameters)})` : parameters.add(after.sort);
  const way = sort.descending ? "<" : ">";
  return `(${name} ${way} ${value} OR (${name} = ${value} AND ${later}) OR ${name} IS NULL)`;
}

/**
 * @param {Shape} shape
 * @param {{key: (string | null)[]}} cursor its key, or its place
 * @param {Parameters} parameters
 */
function isCursor(shape, { key }, parameters) {
  return shape.paging === "key" ? isRow(shape, key, parameters) : `${ROW}.ctid = ${parameters.add(key[0])}::tid`;
}

/**
 * @param {Filter} filter
 * @param {Parameters} parameters
 */
function condition({ column, operator, value }, parameters) {
  const name = own(column);
  const escaped = escapedLike(value);
  switch (operator) {
    case "contains":
      return `${name}::text ILIKE ${parameters.add(`%${escaped}%`)}`;
    case "starts":
      return `${name}::text ILIKE ${parameters.add(`${escaped}%`)}`;
    case "null":
      return `${name} IS NULL`;
    case "not null":
      return `${name} IS NOT NULL`;
    case "<>":
      // A row without a value is not that value either.
      return `${name} IS DISTINCT FROM ${parameters.add(value)}`;
    case "=":
    case "<":
    case "<=":
    case ">":
    case ">=":
      return `${name} ${operator} ${parameters.add(value)}`;
    default:
      throw new Error(`There is no operator ${operator}.`);
  }
}

/** @param {string} text that LIKE is to take as it is */
function escapedLike(text) {
  return text.replace(/[\\%_]/g, "\\$&");
}
