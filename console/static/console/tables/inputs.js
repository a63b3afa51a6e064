// @ts-check
/** What a value of a type is typed into, and comes out of byte for byte (lib/exact_text.js). */

import { optionOf } from "../lib/dom.js";
import { ExactText } from "../lib/exact_text.js";
import { qualified, written } from "../lib/identifiers.js";

/** @typedef {HTMLTextAreaElement | HTMLSelectElement} Input */

const ONE_LINE = /^(?:smallint|integer|bigint|real|double|numeric|date|time|uuid|interval|inet|cidr|macaddr|money|oid)/;

/**
 * Return the values that a column can have, [] where there are too many to list.
 * @param {import("./shape.js").Column} column
 * @param {any[]} types as /v1/sql/schema lists them
 * @returns {string[]}
 */
export function choicesOf(column, types) {
  if (column.type === "boolean") return ["true", "false"];
  const found = types.find(({ kind, schema, name }) => {
    // As PostgreSQL writes types: with the schema where it is not searched, and with quotes where needed.
    const names = [written(name), `${written(schema)}.${written(name)}`, qualified({ schema, name })];
    return kind === "enum" && names.includes(column.type);
  });
  return found?.labels ?? [];
}

/**
 * @param {import("./shape.js").Column} column
 * @param {string[]} choices
 * @param {string | null} value
 * @returns {Input}
 */
export function inputFor(column, choices, value) {
  if (choices.length) {
    const select = document.createElement("select");
    // A label that was added since the choices were read is a value, too.
    const all = value === null || choices.includes(value) ? choices : [value, ...choices];
    select.append(...all.map(optionOf));
    if (value !== null) select.value = value;
    return select;
  }
  const area = document.createElement("textarea");
  area.rows = ONE_LINE.test(column.type) ? 1 : 6;
  area.spellcheck = false;
  area.autocapitalize = "none";
  new ExactText(area, value ?? "");
  return area;
}
