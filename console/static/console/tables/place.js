// @ts-check
/** What the page shows, as its address names it: a table, its filters and order, the page of rows. */

import { OPERATORS } from "./statements.js";

/**
 * first: the number of the first row of the page. hidden: columns that are not shown. filters: null
 * where the address has some that cannot be read.
 * @typedef {object} View
 * @property {import("./statements.js").Filter[] | null} filters
 * @property {import("./statements.js").Sort | null} sort
 * @property {number} first
 * @property {string[]} hidden
 */
/** @typedef {View & {schema: string, table: string}} Place table: '' for none */

/** A table as it is opened. @returns {View} */
export function wholeTable() {
  return { filters: [], sort: null, first: 1, hidden: [] };
}

/**
 * Return the place that a query string names.
 * @param {string} search
 * @returns {Place}
 */
export function placeIn(search) {
  const query = new URLSearchParams(search);
  const sort = query.get("sort");
  const first = Number(query.get("from") ?? 1);
  return {
    schema: query.get("schema") ?? "public",
    table: query.get("table") ?? "",
    filters: filtersIn(query.get("filter")),
    sort: sort === null ? null : { column: sort, descending: query.get("order") === "desc" },
    first: Number.isSafeInteger(first) && first > 0 ? first : 1,
    hidden: parsed(query.get("hide")).filter((/** @type {unknown} */ name) => typeof name === "string"),
  };
}

/**
 * Return the query of a place; what is empty is not named.
 * @param {Place} place
 * @returns {Record<string, string>}
 */
export function queryOf({ schema, table, filters, sort, first, hidden }) {
  return {
    schema,
    table,
    filter: filters?.length ? JSON.stringify(filters.map(({ column, operator, value }) => [column, operator, value])) : "",
    sort: sort?.column ?? "",
    order: sort?.descending ? "desc" : "",
    from: first > 1 ? String(first) : "",
    hide: hidden.length ? JSON.stringify(hidden) : "",
  };
}

/**
 * @param {string | null} text
 * @returns {import("./statements.js").Filter[] | null}
 */
function filtersIn(text) {
  const read = text === null ? [] : parsed(text);
  const isWhole = read.every((/** @type {unknown} */ one) => Array.isArray(one) && one.length === 3 && one.every((each) => typeof each === "string") && Object.hasOwn(OPERATORS, one[1]));
  if (!isWhole || (text !== null && !read.length)) return null;
  return read.map((/** @type {any[]} */ [column, operator, value]) => ({ column, operator, value }));
}

/** @param {string | null} text a list as JSON @returns {any[]} [] for anything else */
function parsed(text) {
  try {
    const read = JSON.parse(text ?? "[]");
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}
