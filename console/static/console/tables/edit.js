// @ts-check
/** Changes of rows: what the role may do, values, new rows, rows that go. */

import { post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, show } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { onPress } from "../lib/forms.js";
import { announce } from "../lib/status.js";
import { CellEditor } from "./cell.js";
import { RowForm } from "./insert.js";
import { withNotices } from "./notices.js";
import { whyFixed } from "./shape.js";
import { remove } from "./statements.js";

/** @typedef {import("./rows.js").Rows} Rows */
/**
 * @typedef {object} Access
 * @property {import("../frame/shell.js").Who} who
 * @property {(action: string) => boolean} may of the role
 * @property {() => any[]} types of the database
 * @property {() => import("./shape.js").Table[]} tables of the database
 */

export class Editing {
  /**
   * @param {Rows} rows
   * @param {Access} access
   */
  constructor(rows, access) {
    this.rows = rows;
    this.access = access;
    this.cell = new CellEditor(rows, access);
    this.form = new RowForm(rows, access);
    onPress(byId("delete"), byId("rows"), () => this.#delete());
  }

  /** Show what the role may do with the table. */
  offer() {
    const { shape } = this.rows;
    if (!shape) return;
    const { may } = this.access;
    const why = whyFixed(shape);
    byId("fixed").textContent = why;
    show(byId("fixed"), why !== "" && may("update"));
    const takesRows = !shape.table.kind.includes("view");
    show(byId("insert"), takesRows && may("create"));
    show(byId("import"), takesRows && may("create"));
  }

  /** @param {Set<number>} marked rows */
  mark(marked) {
    const isOffered = marked.size > 0 && this.access.may("delete") && (this.rows.shape?.key.length ?? 0) > 0;
    byId("delete").textContent = `Delete ${count(marked.size, "row")}`;
    show(byId("delete"), isOffered);
  }

  async #delete() {
    const { rows } = this;
    const { shape } = rows;
    if (!shape) return;
    const marked = [...rows.grid.marked];
    await confirm(`Delete ${count(marked.length, "row")}?`, `From ${shape.table.schema}.${shape.table.name}. It cannot be undone.`, "Delete");
    const queries = marked.map((row) => remove(shape, rows.keyOf(row), rows.versions[row] ?? ""));
    const answer = await post("/v1/sql", { queries });
    const results = answer.results ?? [answer];
    const gone = results.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.row_count, 0);
    await rows.load();
    // The button, which had the focus, is not shown any more.
    rows.grid.root.focus();
    const kept = marked.length - gone;
    const rest = kept ? ` ${count(kept, "row")} had been changed or deleted in the meantime: check again.` : "";
    announce(withNotices(`${count(gone, "row")} deleted.${rest}`, answer));
  }
}
