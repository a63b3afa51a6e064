// @ts-check
/** Saved queries, which everyone in the organization finds. */

import { call, list, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/sql/queries";

/** @typedef {{id: string, name: string, query: string, version: number, updated_by: string}} Saved */

export class SavedQueries {
  /**
   * @param {import("./editor.js").Editor} editor
   * @param {boolean} mayWrite
   */
  constructor(editor, mayWrite) {
    this.editor = editor;
    this.mayWrite = mayWrite;
    /** @type {Saved | null} what the editor's text came from */
    this.opened = null;
    /** @type {Saved[]} */
    this.rows = [];
    show(byId("save"), mayWrite);
    byId("save").addEventListener("click", () => this.ask());
    onSubmit(/** @type {HTMLFormElement} */ (byId("save-form")), (values) => this.#save(values.name));
    byId("saved-filter").addEventListener("input", () => this.#draw());
  }

  async load() {
    this.rows = await list(PATH);
    this.rows.sort((left, right) => left.name.localeCompare(right.name));
    this.#draw();
  }

  #draw() {
    const wanted = /** @type {HTMLInputElement} */ (byId("saved-filter")).value.trim().toLowerCase();
    const rows = this.rows.filter((row) => `${row.name} ${row.query}`.toLowerCase().includes(wanted));
    byId("saved-list").replaceChildren(...rows.map((row) => this.#rowOf(row)));
    show(byId("saved-none"), rows.length === 0);
    byId("saved-none").textContent = wanted ? "Nothing matches." : "Nothing is saved yet.";
  }

  /** @param {Saved} row */
  #rowOf(row) {
    const item = stamp("saved-row");
    fill(item, { name: row.name, about: `by ${row.updated_by}`, text: row.query.slice(0, 200) });
    within(item, "[data-action=open]").addEventListener("click", () => this.#open(row));
    const remove = within(item, "[data-action=remove]");
    remove.setAttribute("aria-label", `Delete: ${row.name}`);
    show(remove, this.mayWrite);
    onPress(remove, byId("saved"), async () => {
      await confirm("Delete this saved query?", `“${row.name}” goes for everyone in the organization.`, "Delete");
      await call("DELETE", `${PATH}/${row.id}`);
      if (this.opened?.id === row.id) this.#remember(null);
      await this.load();
      announce("The saved query is deleted.");
    });
    return item;
  }

  /**
   * Open the saved query that an address names, once: a reload shows what is typed from then on.
   * @param {string} id
   */
  async openById(id) {
    await this.load();
    const row = this.rows.find((each) => each.id === id);
    history.replaceState(null, "", location.pathname);
    if (row) this.#open(row);
    else announce("The saved query is not there any more.");
  }

  /** @param {Saved} row */
  #open(row) {
    this.editor.replace(row.query);
    this.#remember(row);
  }

  /** @param {Saved | null} row */
  #remember(row) {
    this.opened = row;
    byId("opened").textContent = row ? row.name : "";
  }

  /** Ask for a name and save the editor's text. */
  ask() {
    if (!this.mayWrite || dialog().open) return;
    const field = /** @type {HTMLInputElement} */ (byId("save-name"));
    field.value = this.opened?.name ?? "";
    restoreDraft(/** @type {HTMLFormElement} */ (byId("save-form")));
    dialog().showModal();
    field.select();
  }

  /** @param {string} name */
  async #save(name) {
    const query = this.editor.text;
    const { opened } = this;
    const isSame = opened && opened.name.toLowerCase() === name.trim().toLowerCase();
    try {
      const row = isSame
        ? await call("PATCH", `${PATH}/${opened.id}`, { version: opened.version, name, query })
        : await post(PATH, { name, query });
      this.#remember(row);
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "saved_query_changed") throw error;
      // From now on this version is the one that a second press replaces, knowingly.
      if (opened) this.opened = { ...opened, version: error.content.version };
      error.content.detail += " Press Save again to replace that version with yours.";
      throw error;
    }
    dialog().close();
    await this.load();
    announce(`Saved as “${name}”.`);
  }
}

function dialog() {
  return /** @type {HTMLDialogElement} */ (byId("save-dialog"));
}
