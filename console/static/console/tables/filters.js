// @ts-check
/** Conditions on the rows of a table. */

import { byId, optionOf, show, stamp, within } from "../lib/dom.js";
import { ExactText, exactValue } from "../lib/exact_text.js";
import { OPERATORS } from "./statements.js";

/**
 * Make the form of filters work.
 * @param {import("./rows.js").Rows} rows
 */
export function bindFilters(rows) {
  const form = /** @type {HTMLFormElement} */ (byId("filters"));
  byId("filter-add").addEventListener("click", () => {
    addLine(rows);
    show(form);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    rows.filters = read();
    rows.restart();
  });
}

/** Remove all conditions, as for another table. */
export function clearFilters() {
  byId("filter-lines").replaceChildren();
  show(byId("filters"), false);
}

/** @param {import("./rows.js").Rows} rows */
function addLine(rows) {
  const line = stamp("filter-line");
  const columns = /** @type {HTMLSelectElement} */ (within(line, "[name=column]"));
  const operators = /** @type {HTMLSelectElement} */ (within(line, "[name=operator]"));
  const value = /** @type {HTMLTextAreaElement} */ (within(line, "[name=value]"));
  // An input would take the line breaks out of what is pasted.
  new ExactText(value, "");
  value.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    value.form?.requestSubmit();
  });
  columns.append(...(rows.shape?.columns ?? []).map((column) => optionOf(column.name)));
  operators.append(...Object.entries(OPERATORS).map(([name, label]) => new Option(label, name)));
  operators.addEventListener("change", () => show(value, !operators.value.endsWith("null")));
  within(line, "[data-action=remove]").addEventListener("click", () => {
    line.remove();
    rows.filters = read();
    show(byId("filters"), byId("filter-lines").childElementCount > 0);
    rows.restart();
  });
  byId("filter-lines").append(line);
  columns.focus();
}

/** @returns {import("./statements.js").Filter[]} */
function read() {
  return [...byId("filter-lines").children].map((line) => {
    const value = (/** @type {string} */ name) => exactValue(/** @type {HTMLTextAreaElement} */ (within(line, `[name=${name}]`)));
    return { column: value("column"), operator: value("operator"), value: value("value") };
  });
}
