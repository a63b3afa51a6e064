// @ts-check
/** Usage of SQL: by day as a chart, and its sums by environment. */

import { draw } from "../lib/chart.js";
import { byId, element, show } from "../lib/dom.js";
import { bytes, credits, number } from "../lib/format.js";
import { byDay, grouped, sums } from "./figures.js";

/** What can be charted: a title and how its values are written. */
const MEASURES = new Map([
  ["statements", { title: "Statements", write: number }],
  ["milliseconds", { title: "Seconds", write: number, scale: 1 / 1000 }],
  ["egress_bytes", { title: "Delivered", write: bytes }],
  ["storage_byte_hours", { title: "Stored, on average", write: bytes, scale: 1 / 24 }],
  ["charged_ucr", { title: "Charges in credits", write: credits }],
]);

/**
 * @param {any[]} rows each of one day and environment
 * @param {string[]} days to be shown
 */
export function showSql(rows, days) {
  const measure = /** @type {HTMLSelectElement} */ (byId("sql-measure")).value;
  const { title, write, scale = 1 } = /** @type {any} */ (MEASURES.get(measure));
  draw(byId("sql-chart"), {
    title,
    moments: days.map((day) => new Date(`${day}T00:00`)),
    write,
    stacked: true,
    lines: grouped(rows, "environment", measure).map(({ name, rows: own }) => ({
      name,
      values: byDay(own, days, measure).map((value) => value * scale),
    })),
  });
  byId("sql-rows").replaceChildren(...sums(rows, [...MEASURES.keys()]).map(line));
  show(byId("sql-table"), rows.length > 0);
  show(byId("no-sql"), rows.length === 0);
}

/** @param {any} sum of one environment */
function line(sum) {
  const made = element("tr");
  const name = element("th", sum.environment || "(deleted)");
  name.setAttribute("scope", "row");
  const texts = [number(sum.statements), number(sum.milliseconds / 1000), bytes(sum.egress_bytes), bytes(sum.storage_byte_hours / 730), credits(sum.charged_ucr)];
  const cells = texts.map((text) => element("td", text));
  for (const cell of cells) cell.className = "number";
  made.append(name, ...cells);
  return made;
}
