// @ts-check
/** The Tables page: the tables of the environment, and the rows and structure of one of them. */

import { linkHere, ofEnvironment } from "../frame/environment.js";
import { openPage } from "../frame/shell.js";
import { bindCopyMenu } from "../grid/copy_menu.js";
import { bindDrawer } from "../grid/drawer.js";
import { get } from "../lib/api.js";
import { byId, fill, show } from "../lib/dom.js";
import { FormDraft } from "../lib/drafts.js";
import { bytes } from "../lib/format.js";
import { onPress } from "../lib/forms.js";
import { tell } from "../lib/status.js";
import { bindTablist, choose } from "../lib/tablist.js";
import { ColumnChooser } from "./columns.js";
import { bindCreate, offerSchemas } from "./create.js";
import { Editing } from "./edit.js";
import { Filters } from "./filters.js";
import { bindImport } from "./import.js";
import { placeIn, queryOf, wholeTable } from "./place.js";
import { Rows } from "./rows.js";
import { lookUnderDomains } from "./shape.js";
import { showStructure } from "./structure.js";
import { TableList } from "./table_list.js";

/** @typedef {import("./shape.js").Table} Table */
/** @typedef {import("./place.js").View} View */

const KINDS = /** @type {Record<string, string>} */ ({
  table: "Table",
  partitioned_table: "Partitioned table",
  view: "View",
  materialized_view: "Materialized view",
  foreign_table: "Foreign table",
});

await openPage(ofEnvironment(async (who) => {
  const title = document.title;
  fill(byId("main"), { where: who.environment.name });
  const { permissions } = await get("/v1/permissions/effective");
  /** @type {any} */
  let found = await readDatabase();
  /** @type {Rows} */
  const rows = new Rows({
    onOpen: (row, column, typed) => editing.cell.open(row, column, typed),
    onSelect: (marked) => editing.mark(marked),
    onView: (isStep) => keep(isStep),
    onShow: () => {
      editing.cell.abandon();
      columns.refresh();
    },
  });
  const types = () => found.types;
  /** @type {Editing} */
  const editing = new Editing(rows, { who, may: (action) => permissions.sql?.includes(action) ?? false, types, tables: () => found.tables });
  const filters = new Filters(rows, types);
  const columns = new ColumnChooser(rows);
  const list = new TableList((table) => linkHere(queryOf({ ...wholeTable(), schema: table.schema, table: table.name })), (table) => {
    open(table, wholeTable()).catch(tell);
    keep(true);
  });
  bindImport(rows, who);
  bindCopyMenu(rows.grid);
  bindDrawer();
  bindTablist(byId("table-tabs"));
  onPress(byId("refresh"), byId("rows"), refresh);
  const mayCreate = permissions.schema?.includes("create") ?? false;
  for (const id of ["create", "create-first"]) show(byId(id), mayCreate);
  bindCreate(new FormDraft(who, "create"), async (schema, name) => {
    await readSchema();
    const table = tableAt(schema, name);
    if (!table) return;
    const opened = open(table, wholeTable());
    keep(true);
    await opened;
  });
  addEventListener("popstate", () => void openAddress().catch(tell));

  async function readSchema() {
    found = await readDatabase();
    drawList();
  }

  function drawList() {
    list.show(found.tables, found.truncated);
    offerSchemas(found.schemas.map((/** @type {{name: string}} */ each) => each.name));
  }

  /**
   * @param {string} schema
   * @param {string} name
   * @returns {Table | undefined}
   */
  function tableAt(schema, name) {
    return found.tables.find((/** @type {Table} */ table) => table.schema === schema && table.name === name);
  }

  /** Let the address name what is shown. @param {boolean} isStep to which Back leads */
  function keep(isStep) {
    const table = rows.shape?.table;
    if (!table) return;
    filters.draw();
    const address = linkHere(queryOf({ ...rows.view, schema: table.schema, table: table.name }));
    if (address === location.search) return;
    if (isStep) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  /** Show what the address names; the first table, where it names none. */
  async function openAddress() {
    const place = placeIn(location.search);
    const table = place.table ? tableAt(place.schema, place.table) : found.tables[0];
    if (!table) return showNone(place);
    const opened = open(table, place);
    // So that a copied address names all of it; a filter that cannot be read stays in it.
    if (place.filters) keep(false);
    await opened;
  }

  /** Read the tables and the rows anew, as they are shown. */
  async function refresh() {
    await readSchema();
    const { schema, name } = rows.shape?.table ?? { schema: "", name: "" };
    const table = tableAt(schema, name);
    if (table) await open(table, rows.view);
    else showNone({ schema, table: name });
  }

  /** @param {{schema: string, table: string}} place of a table that is not there */
  function showNone({ schema, table }) {
    const isEmpty = found.tables.length === 0 && !table;
    show(byId("table"), false);
    show(byId("tables-side"), !isEmpty);
    show(byId("no-table"), isEmpty);
    show(byId("gone"), !isEmpty);
    fill(byId("gone"), { table: `There is no table ${table} here`, place: `The schema ${schema} of ${who.environment.name} has no table of this name` });
    document.title = title;
    list.mark(null);
  }

  /**
   * @param {Table} table
   * @param {View} view
   */
  async function open(table, view) {
    const isOther = rows.shape?.table.schema !== table.schema || rows.shape.table.name !== table.name || byId("table").hidden;
    show(byId("table"));
    show(byId("tables-side"));
    show(byId("no-table"), false);
    show(byId("gone"), false);
    const about = [KINDS[table.kind], sizeOf(table)].filter(Boolean).join(" · ");
    fill(byId("table"), { name: table.name, about });
    document.title = `${table.name} · ${title}`;
    byId("table-comment").textContent = table.comment ?? "";
    show(byId("table-comment"), Boolean(table.comment));
    if (isOther) choose(byId("table-tabs"), byId("tab-rows"));
    showStructure(table);
    const opened = rows.open(table, { filters: view.filters, sort: view.sort, first: view.first, hidden: view.hidden });
    filters.draw();
    columns.draw();
    editing.offer();
    list.mark(table);
    await opened;
  }

  drawList();
  await openAddress();
}));

async function readDatabase() {
  const found = await get("/v1/sql/schema");
  lookUnderDomains(found);
  return found;
}

/** @param {Table} table */
function sizeOf(table) {
  if (table.kind === "view") return "";
  const rows = table.estimated_rows === null ? "" : `about ${table.estimated_rows.toLocaleString()} rows, `;
  return `${rows}${bytes(table.size_bytes)}`;
}
