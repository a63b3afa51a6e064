// @ts-check
/** How wide columns are. */

import { shownOf } from "./values.js";

const LEAST_PX = 56;
const MOST_PX = 900;
/** The widest that a column is by itself. */
const FITTED_PX = 340;
const CHARACTER_PX = 7.9;
const PADDING_PX = 26;
/** Rows that are looked at: enough to guess by, and as fast for a million. */
const SAMPLE = 60;

/**
 * Return the widths in which most values are seen whole.
 * @param {import("./values.js").GridColumn[]} columns
 * @param {import("./values.js").Value[][]} rows
 */
export function fitted(columns, rows) {
  const sample = rows.slice(0, SAMPLE);
  return columns.map((column, at) => {
    const lengths = sample.map((row) => shownOf(row[at]).length);
    const head = column.name.length + (column.mark ? column.mark.length + 1 : 0) + (column.declared ?? column.type).length * 0.85 + 1.5;
    const longest = Math.max(head, ...lengths);
    return Math.min(FITTED_PX, clamped(Math.ceil(longest * CHARACTER_PX) + PADDING_PX));
  });
}

/** @param {number} width */
export function clamped(width) {
  return Math.max(LEAST_PX, Math.min(MOST_PX, Math.round(width)));
}
