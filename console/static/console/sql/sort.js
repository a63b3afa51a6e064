// @ts-check
/** Rows of a result in another order: by the values of a column, NULL last, as they came where these are equal. */

import { isNumeric, textOf } from "../grid/values.js";

/** @typedef {{column: number, direction: "ascending" | "descending"}} Sort */

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;
const LETTERS = new Intl.Collator();

/**
 * Return how a press on a column's head sorts: up, down, not at all.
 * @param {Sort | null} now
 * @param {number} column
 * @returns {Sort | null}
 */
export function nextSort(now, column) {
  if (now?.column !== column) return { column, direction: "ascending" };
  return now.direction === "ascending" ? { column, direction: "descending" } : null;
}

/**
 * @param {import("./run.js").Result} result
 * @param {Sort} sort
 */
export function sorted({ columns, rows }, { column, direction }) {
  const compare = isNumeric(columns[column].type) ? compareNumbers : LETTERS.compare;
  const sign = direction === "ascending" ? 1 : -1;
  const keyed = rows.map((row) => ({ row, text: row[column] === null ? null : textOf(row[column]) }));
  keyed.sort((left, right) => {
    if (left.text === null || right.text === null) return Number(left.text === null) - Number(right.text === null);
    return sign * compare(left.text, right.text);
  });
  return keyed.map(({ row }) => row);
}

/**
 * Compare numbers, by all their digits; PostgreSQL has NaN as the greatest.
 * @param {string} left
 * @param {string} right
 */
function compareNumbers(left, right) {
  const [a, b] = [sizeOf(left), sizeOf(right)];
  if (a !== b) return a < b ? -1 : 1;
  const digits = Math.max(...[left, right].map((text) => DECIMAL.exec(text)?.[3]?.length ?? 0));
  const [whole, other] = [left, right].map((text) => scaled(text, digits));
  return whole < other ? -1 : Number(whole > other);
}

/** @param {string} text */
function sizeOf(text) {
  // Money has signs of its own.
  const number = Number(text === "NaN" ? Infinity : text);
  return Number.isNaN(number) ? Number(text.replace(/[^\d.-]/g, "")) : number;
}

/**
 * @param {string} text
 * @param {number} digits behind the point
 */
function scaled(text, digits) {
  const [, sign, whole, fraction = ""] = DECIMAL.exec(text) ?? ["", "", "0"];
  return BigInt(sign + whole + fraction.padEnd(digits, "0"));
}
