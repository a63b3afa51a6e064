// @ts-check
/** A text for the database, and the rows it gives. */

import { post } from "./api.js";
import { byId, element, fill, show } from "./dom.js";
import { onSubmit } from "./forms.js";
import { count } from "./format.js";

const SHOWN_ROWS = 200;

/** @param {string} environment its name */
export function bindSql(environment) {
  const form = /** @type {HTMLFormElement} */ (byId("sql-form"));
  const text = /** @type {HTMLTextAreaElement} */ (byId("query"));
  fill(form, { where: environment });
  onSubmit(form, async ({ query }) => {
    const result = await post("/v1/sql", { query, rows: "arrays" });
    showResult(result);
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

/** @param {any} result */
function showResult(result) {
  const hasRows = result.columns.length > 0;
  const shown = result.rows.slice(0, SHOWN_ROWS);
  const head = element("tr");
  head.append(...result.columns.map(headOf));
  byId("result-head").replaceChildren(head);
  byId("result-rows").replaceChildren(...shown.map(rowOf));
  show(byId("result-table"), hasRows);
  byId("result-summary").textContent = summaryOf(result, shown.length);
}

/** @param {{name: string, type: string}} column */
function headOf(column) {
  const cell = element("th", column.name);
  cell.setAttribute("scope", "col");
  const type = element("span", column.type);
  type.className = "type";
  cell.append(" ", type);
  return cell;
}

/** @param {unknown[]} values */
function rowOf(values) {
  const row = element("tr");
  row.append(
    ...values.map((value) => {
      const cell = element("td", written(value));
      if (value === null) cell.className = "null";
      return cell;
    }),
  );
  return row;
}

/** @param {unknown} value */
function written(value) {
  if (value === null) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * @param {any} result
 * @param {number} shown
 */
function summaryOf(result, shown) {
  const time = `${result.stats.elapsed_ms.toFixed(1)} ms`;
  const rows = count(result.row_count, "row");
  if (result.columns.length === 0) return `${result.command}: ${rows}, ${time}.`;
  const cut = result.truncated || shown < result.rows.length ? `, the first ${shown} shown` : "";
  return `${rows}${cut}, ${time}.`;
}
