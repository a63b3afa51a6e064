// @ts-check
/**
 * SQL that reads long values in part: the beginning and the size of each, and the rest on demand, so
 * that one long value does not keep the others from being shown. Sizes are bytes of PostgreSQL's text.
 */

/** A longer value is read in part. */
export const LONG_BYTES = 4096;
const START_CHARACTERS = 1000;
/** All values of a row together, where it has many columns. */
const ROW_BYTES = 1024 * 1024;
/** What one request reads of a long value. */
const PIECE_CHARACTERS = 1_000_000;

/** Types whose text is never long. */
const SHORT =
  /^(?:bool|boolean|smallint|integer|bigint|int[248]|real|double precision|float[48]|oid|money|date|time|timestamp|interval|uuid|inet|cidr|macaddr8?|name|tid|xid8?|pg_lsn)(?![\w.])[^[\]]*$/;
/** Types whose cast to text gives the text that PostgreSQL writes: that of inet, say, does not. */
const TEXT = /^(?:text|varchar|character varying|json|jsonb|xml)(?:\(|$)/;

/**
 * @typedef {object} Source a column of a query
 * @property {string} expression
 * @property {string} type as results or tables' definitions name it
 * @property {boolean} [isWhole] it is read as a whole, however long it is
 */

/** True for a column whose values may be long. @param {Source} source */
function mayBeLong({ type, isWhole }) {
  return !isWhole && !SHORT.test(type);
}

/**
 * Return what to SELECT for columns: the beginning of each, and at last the sizes of those that are
 * longer, as `rowOf` reads them.
 * @param {Source[]} sources
 * @param {number} [most] bytes of a value that are read
 */
export function selected(sources, most = LONG_BYTES) {
  const long = sources.filter(mayBeLong);
  const limit = Math.min(most, Math.floor(ROW_BYTES / Math.max(1, long.length)));
  const sizes = long.map((source) => `CASE WHEN ${sizeOf(source)} > ${limit} THEN ${sizeOf(source)} END`);
  return [...sources.map((source) => (mayBeLong(source) ? beginning(source, limit) : source.expression)), sizes.length ? `ARRAY[${sizes.join(", ")}]` : "NULL"].join(", ");
}

/**
 * Return the values of a row that was selected so.
 * @template T
 * @param {Source[]} sources
 * @param {(string | null)[]} row its texts, and the sizes
 * @param {(start: string, bytes: number, column: number) => T} longValue makes one of which only the beginning is known
 * @returns {(string | null | T)[]}
 */
export function rowOf(sources, row, longValue) {
  const sizes = row[sources.length]?.slice(1, -1).split(",") ?? [];
  let at = 0;
  return sources.map((source, column) => {
    const size = Number(mayBeLong(source) ? sizes[at++] : NaN);
    return size > 0 ? longValue(row[column] ?? "", size, column) : row[column];
  });
}

/**
 * Return the expression of a piece of a value.
 * @param {Source} source
 * @param {number} from a character, counted from 0
 * @param {number} [most] characters
 */
export function piece(source, from, most = PIECE_CHARACTERS) {
  if (source.type === "bytea") {
    // Two characters are a byte, after the first two.
    const hex = `encode(substring(${source.expression} FROM ${Math.max(0, from - 2) / 2 + 1} FOR ${most / 2}), 'hex')`;
    return from === 0 ? `'\\x' || ${hex}` : hex;
  }
  return `substr(${textOf(source)}, ${from + 1}, ${most})`;
}

/** @param {Source} source */
function textOf({ expression, type }) {
  if (TEXT.test(type)) return `${expression}::text`;
  // As PostgreSQL writes every type; of NULL it would make an empty text.
  return `CASE num_nulls(${expression}) WHEN 0 THEN concat(${expression}) END`;
}

/** @param {Source} source */
function sizeOf(source) {
  return source.type === "bytea" ? `2 + 2 * octet_length(${source.expression})::bigint` : `octet_length(${textOf(source)})`;
}

/**
 * @param {Source} source
 * @param {number} limit
 */
function beginning(source, limit) {
  const start = piece(source, 0, Math.min(START_CHARACTERS, 2 * Math.floor(limit / 2)));
  const all = source.type === "bytea" ? `${source.expression}::text` : textOf(source);
  return `CASE WHEN ${sizeOf(source)} > ${limit} THEN ${start} ELSE ${all} END`;
}
