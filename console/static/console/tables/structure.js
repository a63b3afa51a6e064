// @ts-check
/** Columns, keys and indexes of a table. */

import { byId, element, show } from "../lib/dom.js";
import { bytes } from "../lib/format.js";
import { shortType } from "./shape.js";

const KINDS = /** @type {Record<string, string>} */ ({
  primary_key: "primary key",
  foreign_key: "foreign key",
  unique: "unique",
  check: "check",
  exclusion: "exclusion",
});

/** @param {import("./shape.js").Table} table */
export function showStructure(table) {
  byId("columns-rows").replaceChildren(
    ...table.columns.map((column) =>
      lineOf(column.name, shortType(column.declared), column.is_nullable ? "yes" : "no", defaultOf(column), column.comment ?? ""),
    ),
  );
  const constraints = table.constraints.map((one) => lineOf(one.name, KINDS[one.kind] ?? one.kind, one.definition));
  byId("constraints-rows").replaceChildren(...constraints);
  show(byId("constraints"), constraints.length > 0);
  const indexes = table.indexes.map((one) => lineOf(one.name, one.definition, one.is_valid ? bytes(one.size_bytes) : "being built"));
  byId("indexes-rows").replaceChildren(...indexes);
  show(byId("indexes"), indexes.length > 0);
  byId("definition-text").textContent = table.definition ?? "";
  show(byId("definition"), Boolean(table.definition));
}

/** @param {import("./shape.js").Column} column */
function defaultOf(column) {
  if (column.generated) return `generated: ${column.generated}`;
  if (column.identity) return `identity (${column.identity.replace("_", " ")})`;
  return column.default ?? "";
}

/**
 * @param {string} name
 * @param {string[]} texts
 */
function lineOf(name, ...texts) {
  const line = element("tr");
  const head = element("th", name);
  head.setAttribute("scope", "row");
  line.append(head, ...texts.map((text) => element("td", text)));
  return line;
}
