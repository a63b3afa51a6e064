// @ts-check
/** The Tables page: the tables of the environment, and the rows and structure of one of them. */

import { openPage } from "../frame/shell.js";
import { get } from "../lib/api.js";
import { byId, element, fill, show } from "../lib/dom.js";
import { FormDraft } from "../lib/drafts.js";
import { bytes } from "../lib/format.js";
import { tell } from "../lib/status.js";
import { bindTablist, choose } from "../lib/tablist.js";
import { bindCreate, offerSchemas } from "./create.js";
import { Editing } from "./edit.js";
import { bindFilters, clearFilters } from "./filters.js";
import { bindImport } from "./import.js";
import { Rows } from "./rows.js";
import { showStructure } from "./structure.js";

/** @typedef {import("./shape.js").Table} Table */

const KINDS = /** @type {Record<string, string>} */ ({
  table: "Table",
  partitioned_table: "Partitioned table",
  view: "View",
  materialized_view: "Materialized view",
  foreign_table: "Foreign table",
});

await openPage(async (who) => {
  fill(byId("main"), { where: who.environment.name });
  const { permissions } = await get("/v1/permissions/effective");
  /** @type {any} */
  let found = await get("/v1/sql/schema");
  const editing = new Editing(who, permissions, () => found.types);
  const rows = new Rows((row, column) => editing.open(row, column), (marked) => editing.mark(marked));
  editing.bind(rows);
  bindFilters(rows);
  bindImport(rows, who);
  bindTablist(byId("table-tabs"));
  byId("tables-filter").addEventListener("input", () => draw());
  show(byId("create"), permissions.schema?.includes("create") ?? false);
  bindCreate(new FormDraft(who, "create"), async (schema, name) => {
    found = await get("/v1/sql/schema");
    draw();
    await open(found.tables.find((/** @type {Table} */ table) => table.schema === schema && table.name === name));
  });

  function draw() {
    const wanted = /** @type {HTMLInputElement} */ (byId("tables-filter")).value.trim().toLowerCase();
    const tables = found.tables.filter((/** @type {Table} */ table) => `${table.schema}.${table.name}`.toLowerCase().includes(wanted));
    byId("tables-list").replaceChildren(...tables.map(itemOf));
    offerSchemas(found.schemas.map((/** @type {{name: string}} */ each) => each.name));
    show(byId("tables-cut"), found.truncated);
    show(byId("tables-none"), tables.length === 0);
    byId("tables-none").textContent = wanted ? "No table has this name." : "No tables yet.";
  }

  /** @param {Table} table */
  function itemOf(table) {
    const item = element("li");
    const link = /** @type {HTMLAnchorElement} */ (element("a", table.schema === "public" ? table.name : `${table.schema}.${table.name}`));
    link.href = addressOf(table);
    if (rows.shape?.table === table) link.setAttribute("aria-current", "true");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(table).catch(tell);
    });
    item.append(link);
    return item;
  }

  /** @param {Table | undefined} table */
  async function open(table) {
    show(byId("table"), Boolean(table));
    show(byId("no-table"), !table);
    if (!table) return;
    history.replaceState(null, "", addressOf(table));
    const about = [KINDS[table.kind], sizeOf(table)].filter(Boolean).join(" · ");
    fill(byId("table"), { name: table.name, about });
    byId("table-comment").textContent = table.comment ?? "";
    byId("rows-total").textContent = "";
    choose(byId("table-tabs"), byId("tab-rows"));
    clearFilters();
    showStructure(table);
    const opened = rows.open(table);
    editing.offer();
    draw();
    await opened;
  }

  const query = new URLSearchParams(location.search);
  const [schema, name] = [query.get("schema") ?? "public", query.get("table")];
  draw();
  const asked = found.tables.find((/** @type {Table} */ table) => table.schema === schema && table.name === name);
  await open(asked ?? found.tables[0]);
});

/** @param {Table} table */
function addressOf({ schema, name }) {
  return `?${new URLSearchParams({ schema, table: name })}`;
}

/** @param {Table} table */
function sizeOf(table) {
  if (table.kind === "view") return "";
  const rows = table.estimated_rows === null ? "" : `about ${table.estimated_rows.toLocaleString()} rows, `;
  return `${rows}${bytes(table.size_bytes)}`;
}
