// @ts-check
/** Names in SQL. */

const PLAIN = /^[a-z_][a-z0-9_]*$/;
/** Words that PostgreSQL takes for something else where a column or table is named. */
const RESERVED = new Set(
  (
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate " +
    "collation column concurrently constraint create cross current_catalog current_date current_role " +
    "current_schema current_time current_timestamp current_user default deferrable desc distinct do else end " +
    "except false fetch for foreign freeze from full grant group having ilike in initially inner intersect into " +
    "is isnull join lateral leading left like limit localtime localtimestamp natural not notnull null offset on " +
    "only or order outer overlaps placing primary references returning right select session_user similar some " +
    "symmetric system_user table tablesample then to trailing true union unique user using variadic verbose when " +
    "where window with"
  ).split(" "),
);

/**
 * Return a name as SQL has to write it, whatever characters it holds.
 * @param {string} name
 */
export function quoted(name) {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Return a name for a person to read and type: without quotes where it needs none.
 * @param {string} name
 */
export function written(name) {
  return PLAIN.test(name) && !RESERVED.has(name) ? name : quoted(name);
}

/**
 * Return a table's name with its schema.
 * @param {{schema: string, name: string}} table
 */
export function qualified(table) {
  return `${quoted(table.schema)}.${quoted(table.name)}`;
}
