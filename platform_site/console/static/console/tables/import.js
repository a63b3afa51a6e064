// @ts-check
/** A CSV file into a table: all of its rows, or none. */

import { call } from "../lib/api.js";
import { byId, fill } from "../lib/dom.js";
import { clearProblem, onSubmit } from "../lib/forms.js";
import { count } from "../lib/format.js";
import { qualified } from "../lib/identifiers.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";

/** @param {import("./rows.js").Rows} rows */
export function bindImport(rows) {
  const form = /** @type {HTMLFormElement} */ (byId("import-form"));
  const dialog = /** @type {HTMLDialogElement} */ (byId("import-dialog"));
  byId("import").addEventListener("click", () => {
    form.reset();
    clearProblem(form);
    fill(dialog, { table: rows.shape?.table.name ?? "" });
    dialog.showModal();
  });
  byId("import-close").addEventListener("click", () => dialog.close());
  onSubmit(form, async ({ header, delimiter }) => {
    const file = /** @type {HTMLInputElement} */ (byId("import-file")).files?.[0];
    if (!file || !rows.shape) return;
    const query = new URLSearchParams({ table: qualified(rows.shape.table), header, delimiter: delimiter === "tab" ? "\t" : delimiter });
    try {
      const answer = await call("POST", `/v1/sql/import?${query}`, file, { headers: { "Content-Type": "text/csv" } });
      dialog.close();
      announce(`${count(answer.row_count, "row")} imported.`);
    } catch (error) {
      throw placed(error);
    }
    await rows.restart();
  });
}

/** Name the line and the column of the file that an error is about. @param {unknown} error */
function placed(error) {
  if (!(error instanceof Problem) || !error.content.line) return error;
  const { line, column_name: column } = error.content;
  const where = `Line ${line} of the file${column ? `, column ${column}` : ""}: `;
  return new Problem(error.status, { ...error.content, title: "Nothing was imported.", detail: where + error.message });
}
