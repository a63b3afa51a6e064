// @ts-check
/** The columns of a table that are shown. */

import { byId, element } from "../lib/dom.js";
import { shortType } from "./shape.js";

export class ColumnChooser {
  /** @param {import("./rows.js").Rows} rows */
  constructor(rows) {
    this.rows = rows;
    byId("columns-list").addEventListener("change", ({ target }) => {
      const names = this.#unchecked();
      // One is shown at least.
      if (names.length === rows.shape?.columns.length) /** @type {HTMLInputElement} */ (target).checked = true;
      else rows.hide(names);
    });
    byId("columns-all").addEventListener("click", () => {
      rows.hide([]);
      this.draw();
    });
  }

  /** List the columns of the rows' table. */
  draw() {
    const { shape, view } = this.rows;
    byId("columns-list").replaceChildren(...(shape?.columns ?? []).map((column) => lineOf(column, !view.hidden.includes(column.name))));
    this.refresh();
  }

  /** Say how many columns are hidden. */
  refresh() {
    const { shape, shown } = this.rows;
    const all = shape?.columns.length ?? 0;
    byId("columns-summary").textContent = shown.length < all ? `${shown.length} of ${all} columns` : "Columns";
  }

  /** @returns {string[]} the names of the columns that are not to be shown */
  #unchecked() {
    const boxes = /** @type {HTMLInputElement[]} */ ([...byId("columns-list").querySelectorAll("input")]);
    const names = (this.rows.shape?.columns ?? []).map(({ name }) => name);
    return names.filter((_, at) => !boxes[at].checked);
  }
}

/**
 * @param {import("./shape.js").Column} column
 * @param {boolean} isShown
 */
function lineOf({ name, declared }, isShown) {
  const line = element("li");
  const label = element("label");
  label.className = "check";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = isShown;
  const about = element("span", shortType(declared));
  about.className = "muted";
  label.append(box, element("span", name), about);
  line.append(label);
  return line;
}
