// @ts-check
/**
 * A CSV file into a table: all of its rows, or none. A file that was sent before is asked about,
 * also after a reload: its rows would be there twice.
 */

import { call } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show } from "../lib/dom.js";
import { Draft } from "../lib/drafts.js";
import { bytes, count, moment } from "../lib/format.js";
import { attempt, clearProblem, onSubmit } from "../lib/forms.js";
import { qualified } from "../lib/identifiers.js";
import { Cancelled, Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { ImportPreview, offerDelimiters } from "./import_preview.js";
import { withNotices } from "./notices.js";

/** @typedef {{file: string, at: number, rows: number | null}} Sent rows: null while no answer came */

const MOST_REMEMBERED = 50;

/** Ends the import in progress. @type {AbortController | null} */
let underWay = null;

/**
 * @param {import("./rows.js").Rows} rows
 * @param {import("../frame/shell.js").Who} who
 */
export function bindImport(rows, who) {
  const form = /** @type {HTMLFormElement} */ (byId("import-form"));
  const dialog = /** @type {HTMLDialogElement} */ (byId("import-dialog"));
  const chosen = /** @type {HTMLInputElement} */ (byId("import-file"));
  offerDelimiters();
  const preview = new ImportPreview();
  byId("import").addEventListener("click", () => {
    form.reset();
    clearProblem(form);
    preview.clear(rows.shape?.columns ?? []);
    showProgress(0, 0);
    fill(dialog, { table: rows.shape?.table.name ?? "" });
    dialog.showModal();
  });
  byId("import-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => underWay?.abort());
  form.addEventListener("change", ({ target }) => target !== chosen && clearProblem(form));
  chosen.addEventListener("change", () => {
    const file = chosen.files?.[0];
    preview.clear(rows.shape?.columns ?? []);
    if (file) void attempt(form, () => preview.read(file));
  });
  onSubmit(form, async () => {
    const file = chosen.files?.[0];
    if (!file || !rows.shape) return;
    // It was not readable, and may be another one under this name now.
    if (!preview.beginning) await preview.read(file);
    const table = qualified(rows.shape.table);
    const query = new URLSearchParams({ table, ...preview.query() });
    const sent = new SentFiles(who, table, file);
    await sent.refuseUnseen();
    const answer = await send(`/v1/sql/import?${query}`, file, sent);
    dialog.close();
    announce(withNotices(`${count(answer.row_count, "row")} imported.`, answer));
    await rows.change({});
  });
}

/**
 * @param {string} path
 * @param {File} file
 * @param {SentFiles} sent
 */
async function send(path, file, sent) {
  underWay = new AbortController();
  let done = 0;
  const options = {
    headers: { "Content-Type": "text/csv" },
    signal: underWay.signal,
    progressed: (/** @type {number} */ sentBytes) => {
      done = sentBytes;
      showProgress(done, file.size);
    },
  };
  sent.remember(null);
  showProgress(0, file.size);
  try {
    const answer = await call("POST", path, file, options);
    sent.remember(answer.row_count);
    return answer;
  } catch (error) {
    if (error instanceof Cancelled) announce(cancelled(done, file.size));
    // With an answer it is known that no row came in.
    if (error instanceof Problem && error.status > 0 && error.code !== "outcome_unknown") sent.forget();
    throw placed(error);
  } finally {
    underWay = null;
    showProgress(0, 0);
  }
}

/**
 * @param {number} done
 * @param {number} size
 */
function cancelled(done, size) {
  if (done < size) return `Import cancelled: ${bytes(done)} of ${bytes(size)} had been sent.`;
  return "Import cancelled. All of the file had been sent: its rows may be in the table.";
}

/**
 * @param {number} done
 * @param {number} size 0 while nothing is sent
 */
function showProgress(done, size) {
  show(byId("import-progress"), size > 0);
  /** @type {HTMLProgressElement} */ (byId("import-bar")).value = size ? done / size : 0;
  const isSent = size > 0 && done >= size;
  byId("import-said").textContent = isSent ? "Sent. The rows are being written…" : `${bytes(done)} of ${bytes(size)} sent`;
}

/** The files that this user sent into a table from this browser, in any tab. */
class SentFiles {
  /**
   * @param {import("../frame/shell.js").Who} who
   * @param {string} table
   * @param {File} file
   */
  constructor(who, table, file) {
    this.draft = new Draft(who, `imports ${who.environment.id} ${table}`);
    this.name = file.name;
    this.file = `${file.name} ${file.size} ${file.lastModified}`;
  }

  /** @returns {Sent[]} */
  all() {
    return JSON.parse(this.draft.read() ?? "[]");
  }

  others() {
    return this.all().filter((each) => each.file !== this.file);
  }

  /**
   * Ask before a file goes in again.
   * @throws {import("../lib/problem.js").Cancelled}
   */
  async refuseUnseen() {
    const before = this.all().find((each) => each.file === this.file);
    if (!before) return;
    const when = moment(before.at / 1000);
    const what =
      before.rows === null
        ? `It was sent on ${when}, and no answer came: its rows may be in the table.`
        : `Its ${count(before.rows, "row")} came in on ${when}, and would be in the table twice.`;
    await confirm(`Import ${this.name} again?`, what, "Import again");
  }

  /** @param {number | null} rows */
  remember(rows) {
    this.keep([{ file: this.file, at: Date.now(), rows }, ...this.others()].slice(0, MOST_REMEMBERED));
  }

  forget() {
    this.keep(this.others());
  }

  /** @param {Sent[]} sent */
  keep(sent) {
    this.draft.keep(JSON.stringify(sent));
  }
}

/** Name the line and the column of the file that an error is about. @param {unknown} error */
function placed(error) {
  if (!(error instanceof Problem) || !error.content.line) return error;
  const { line, column_name: column } = error.content;
  const where = `Line ${line} of the file${column ? `, column ${column}` : ""}: `;
  return new Problem(error.status, { ...error.content, title: "Nothing was imported.", detail: where + error.message });
}
