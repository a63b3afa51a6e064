// @ts-check
/** What a value of a type is typed into. */

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
  const found = types.find((type) => type.kind === "enum" && [type.name, `${type.schema}.${type.name}`].includes(column.type));
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
    select.append(...choices.map((choice) => new Option(choice)));
    if (value) select.value = value;
    return select;
  }
  const area = document.createElement("textarea");
  area.rows = ONE_LINE.test(column.type) ? 1 : 6;
  area.spellcheck = false;
  area.autocapitalize = "none";
  area.value = value ?? "";
  return area;
}
