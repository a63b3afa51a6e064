// @ts-check
/** What of a table matters for reading and changing its rows. */

import { qualified, written } from "../lib/identifiers.js";

/**
 * type: of the values; that under a domain. declared: as the table declares it.
 * @typedef {object} Column
 * @property {string} name
 * @property {string} type
 * @property {string} declared
 * @property {boolean} isOrdered its values are compared and sorted
 * @property {boolean} is_nullable
 * @property {string | null} default
 * @property {string | null} generated
 * @property {"always" | "by_default" | null} identity
 * @property {string | null} comment
 */
/**
 * @typedef {object} Table as /v1/sql/schema lists it
 * @property {string} schema
 * @property {string} name
 * @property {string} kind
 * @property {number | null} estimated_rows
 * @property {number} size_bytes
 * @property {string | null} comment
 * @property {string | null} definition
 * @property {Column[]} columns
 * @property {{name: string, kind: string, definition: string, columns: string[], references: import("./statements.js").Reference | null}[]} constraints
 * @property {{name: string, definition: string, is_unique: boolean, is_primary: boolean, is_valid: boolean, size_bytes: number}[]} indexes
 */
/** @typedef {{columns: string[], references: import("./statements.js").Reference}} ForeignKey columns, and those that they refer to, in one order */
/**
 * paging: by the primary key; by the place of rows in the table, where it has none; or by skipping
 * rows, for what has no place either, such as views.
 * @typedef {object} Shape
 * @property {Table} table
 * @property {Column[]} columns
 * @property {string[]} key the primary key's columns, [] without one
 * @property {"key" | "place" | "offset"} paging
 */

const SHORT = /** @type {[RegExp, string][]} */ ([
  [/^timestamp(\(\d\))? with time zone/, "timestamptz$1"],
  [/^timestamp(\(\d\))? without time zone/, "timestamp$1"],
  [/^time(\(\d\))? with time zone/, "timetz$1"],
  [/^time(\(\d\))? without time zone/, "time$1"],
  [/^character varying/, "varchar"],
  [/^character\b/, "char"],
  [/^double precision/, "float8"],
]);

/** PostgreSQL's types without an order of their values; some are compared by their length or area. */
const WITHOUT_ORDER = /^(?:json|jsonpath|xml|point|line|lseg|box|path|polygon|circle|refcursor|aclitem|xid|cid|pg_snapshot|txid_snapshot)$/;

/**
 * Let the columns of all tables have the types of their values, and whether these have an order.
 * @param {{tables: Table[], types: any[]}} found as /v1/sql/schema answers
 */
export function lookUnderDomains({ tables, types }) {
  for (const column of tables.flatMap(({ columns }) => columns)) {
    column.declared = column.type;
    for (let domain; (domain = typeOf(column, "domain", types)); ) column.type = domain.base_type;
    column.isOrdered = isOrdered(column, types);
  }
}

/**
 * True if values of a type have an order; an array or a row has that of what is in it.
 * @param {{type: string}} column
 * @param {any[]} types
 * @returns {boolean}
 */
function isOrdered({ type }, types) {
  const one = { type: type.replace(/(?:\[\])+$/, "") };
  const domain = typeOf(one, "domain", types);
  if (domain) return isOrdered({ type: domain.base_type }, types);
  const parts = typeOf(one, "composite", types)?.columns ?? [];
  return !WITHOUT_ORDER.test(one.type) && parts.every((/** @type {{type: string}} */ part) => isOrdered(part, types));
}

/**
 * Return what is known of a column's type.
 * @param {{type: string}} column
 * @param {string} wanted kind
 * @param {any[]} types as /v1/sql/schema lists them
 */
export function typeOf({ type }, wanted, types) {
  // A name without a schema is one of PostgreSQL's own types; the others have quotes where needed.
  return types.find(({ kind, schema, name }) => kind === wanted && [`${written(schema)}.${written(name)}`, qualified({ schema, name })].includes(type));
}

/**
 * @param {Table} table
 * @returns {Shape}
 */
export function shapeOf(table) {
  const names = new Set(table.columns.map((column) => column.name));
  const primary = table.constraints.find((one) => one.kind === "primary_key");
  // A key with a column that the role may not read identifies no row for it.
  const key = primary?.columns.every((name) => names.has(name)) ? primary.columns : [];
  const isTable = table.kind === "table" || table.kind === "partitioned_table";
  const paging = isTable && key.length ? "key" : table.kind === "table" ? "place" : "offset";
  return { table, columns: table.columns, key: paging === "key" ? key : [], paging };
}

/**
 * Return the foreign key of a column, null for none: the one with the fewest other columns.
 * @param {Table} table
 * @param {string} name
 * @returns {ForeignKey | null}
 */
export function foreignKeyOf({ constraints }, name) {
  const found = constraints.filter(({ columns, references }) => references && columns.includes(name));
  found.sort((one, other) => one.columns.length - other.columns.length);
  return /** @type {ForeignKey | undefined} */ (found[0]) ?? null;
}

/** True if a value of the column can be given. @param {Column} column */
export function isWritable(column) {
  return column.generated === null && column.identity !== "always";
}

/** Return a type's short name. @param {string} type */
export function shortType(type) {
  for (const [long, short] of SHORT) {
    if (long.test(type)) return type.replace(long, (_, digits) => short.replace("$1", digits ?? ""));
  }
  return type;
}

/** Return why rows cannot be changed here, "" if they can. @param {Shape} shape */
export function whyFixed(shape) {
  if (shape.key.length) return "";
  if (shape.table.kind === "view" || shape.table.kind === "materialized_view") return "This is a view: its rows are changed in its tables.";
  if (shape.table.kind === "foreign_table") return "This is a foreign table: its rows are changed with SQL.";
  return "This table has no primary key, so its rows cannot be told apart: change them with SQL, or add a primary key.";
}
