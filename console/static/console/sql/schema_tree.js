// @ts-check
/** Schemas, tables and columns beside the editor. */

import { byId, element, show } from "../lib/dom.js";
import { written } from "../lib/identifiers.js";

/** @typedef {{schema: string, name: string, kind: string, columns: any[], constraints: any[]}} Table */

const KINDS = /** @type {Record<string, string>} */ ({
  view: "view",
  materialized_view: "materialized view",
  foreign_table: "foreign table",
  partitioned_table: "partitioned",
});

/**
 * Show a schema; a press on a name puts it into the editor.
 * @param {{schemas: {name: string}[], tables: Table[], truncated: boolean}} found as /v1/sql/schema answers
 * @param {(text: string) => void} insert
 */
export function showSchema(found, insert) {
  const filter = /** @type {HTMLInputElement} */ (byId("schema-filter"));
  const draw = () => {
    const wanted = filter.value.trim().toLowerCase();
    const groups = found.schemas.map(({ name }) => ({
      name,
      tables: found.tables.filter((table) => table.schema === name && matches(table, wanted)),
    }));
    const kept = groups.filter((group) => group.tables.length > 0 || (!wanted && group.name !== "public"));
    byId("schema-tree").replaceChildren(...kept.map((group) => groupOf(group, insert)));
    show(byId("schema-none"), kept.length === 0);
    byId("schema-none").textContent = wanted ? "Nothing has this name." : "No tables yet. Create one with SQL, or on the Tables page.";
  };
  filter.oninput = draw;
  draw();
  show(byId("schema-cut"), found.truncated);
}

/**
 * @param {Table} table
 * @param {string} wanted
 */
function matches(table, wanted) {
  return !wanted || table.name.toLowerCase().includes(wanted) || table.columns.some((column) => column.name.toLowerCase().includes(wanted));
}

/**
 * @param {{name: string, tables: Table[]}} group
 * @param {(text: string) => void} insert
 */
function groupOf({ name, tables }, insert) {
  const details = opening(name, String(tables.length), true);
  const list = element("ul");
  list.append(...tables.map((table) => tableOf(table, insert)));
  details.append(list);
  const item = element("li");
  item.append(details);
  return item;
}

/**
 * @param {Table} table
 * @param {(text: string) => void} insert
 */
function tableOf(table, insert) {
  const details = opening(table.name, KINDS[table.kind] ?? "", false);
  // Thousands of tables: their columns are drawn when they are looked at.
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) details.append(columnsOf(table, insert));
  });
  const item = element("li");
  item.append(details);
  return item;
}

/**
 * @param {Table} table
 * @param {(text: string) => void} insert
 */
function columnsOf(table, insert) {
  const key = new Set(table.constraints.filter((one) => one.kind === "primary_key").flatMap((one) => one.columns));
  const name = table.schema === "public" ? written(table.name) : `${written(table.schema)}.${written(table.name)}`;
  const list = element("ul");
  const first = element("li");
  const browse = /** @type {HTMLAnchorElement} */ (element("a", "Browse"));
  browse.href = `/console/tables?${new URLSearchParams({ schema: table.schema, table: table.name })}`;
  first.append(namePart(name, "insert", () => insert(name)), " ", browse);
  first.className = "tree-table";
  list.append(
    first,
    ...table.columns.map((column) => {
      const item = element("li");
      const mark = key.has(column.name) ? "key" : "";
      item.append(namePart(column.name, `${mark} ${column.type}`.trim(), () => insert(written(column.name))));
      return item;
    }),
  );
  return list;
}

/**
 * @param {string} name
 * @param {string} about
 * @param {() => void} action
 */
function namePart(name, about, action) {
  const button = element("button", name);
  button.setAttribute("type", "button");
  button.className = "tree-name";
  button.append(" ", noteOf(about));
  button.addEventListener("click", action);
  return button;
}

/**
 * @param {string} name
 * @param {string} about
 * @param {boolean} isOpen
 */
function opening(name, about, isOpen) {
  const details = element("details");
  details.toggleAttribute("open", isOpen);
  const summary = element("summary", name);
  summary.append(" ", noteOf(about));
  details.append(summary);
  return details;
}

/** @param {string} text */
function noteOf(text) {
  const note = element("span", text);
  note.className = "tree-note";
  return note;
}
