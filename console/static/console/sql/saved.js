// @ts-check
/**
 * Saved queries, which everyone in the organization finds. The address names the one that is open, and
 * Back goes to the one before; a mark beside its name says that the text was changed.
 */

import { call, get, list, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/sql/queries";
const NAME = "saved";

/** @typedef {{id: string, name: string, query: string, version: number, updated_by: string}} Saved */

export class SavedQueries {
  /**
   * @param {import("./editor.js").Editor} editor
   * @param {import("../lib/drafts.js").TabDraft} origin keeps what this tab's text came from
   * @param {{environment: string, mayWrite: boolean}} options
   */
  constructor(editor, origin, { environment, mayWrite }) {
    this.editor = editor;
    this.origin = origin;
    this.environment = environment;
    this.mayWrite = mayWrite;
    /** @type {Saved | null} what the editor's text came from */
    this.opened = null;
    /** It was said that somebody else has changed it. */
    this.isKnown = false;
    /** The texts that were left for another one. Not in the browser's history, which outlives a sign-out. @type {Map<string, string>} */
    this.left = new Map();
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
      if (this.opened?.id === row.id) this.leave();
      await this.load();
      announce("The saved query is deleted.");
    });
    return item;
  }

  /**
   * Open the saved query that the address names; after a reload, with what was typed since.
   * @param {boolean} isOwn the editor's text was typed in this tab
   */
  async openNamed(isOwn) {
    await this.#follow(history.state, isOwn && this.origin.read() === named());
  }

  /** Go to what another entry of the tab's history had. @param {any} state */
  async goBack(state) {
    const text = this.left.get(state?.entry);
    if (text !== undefined) this.editor.replace(text);
    await this.#follow(state, text !== undefined);
  }

  /**
   * @param {any} state of the address
   * @param {boolean} isThere the text is in the editor, changed perhaps
   */
  async #follow(state, isThere) {
    const id = named();
    // What was open before the environment was changed belongs to that one.
    if (!id || (state?.environment ?? this.environment) !== this.environment) return this.leave();
    const row = await this.#read(id);
    if (!row) {
      this.leave();
      show(byId("saved-gone"));
    } else if (isThere) this.#remember(row);
    else this.#show(row);
  }

  /** @param {string} id */
  async #read(id) {
    try {
      return /** @type {Saved} */ (await get(`${PATH}/${encodeURIComponent(id)}`));
    } catch (error) {
      if (error instanceof Problem && error.status === 404) return null;
      throw error;
    }
  }

  /** @param {Saved} row */
  #open(row) {
    // Back brings the text back that was there.
    const entry = crypto.randomUUID();
    this.left.set(entry, this.editor.text);
    history.replaceState({ environment: this.environment, entry }, "");
    history.pushState(null, "", addressOf(row));
    this.#show(row);
  }

  /** @param {Saved} row */
  #show(row) {
    this.editor.replace(row.query);
    this.#remember(row);
  }

  /** The text comes from elsewhere: it has no name. */
  leave() {
    this.#remember(null);
  }

  /** @param {Saved | null} row */
  #remember(row) {
    this.opened = row;
    this.isKnown = false;
    show(byId("saved-gone"), false);
    this.origin.keep(row?.id ?? "");
    history.replaceState({ environment: this.environment }, "", row ? addressOf(row) : location.pathname);
    this.label(this.editor.text);
  }

  /** Say what a text came from, and whether it was changed. @param {string} text */
  label(text) {
    const { opened } = this;
    byId("opened").textContent = opened ? opened.name : "";
    show(byId("opened-changed"), opened !== null && opened.query !== text);
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
    const stored = isSame ? await this.#read(opened.id) : null;
    // A version that is not the one that was opened is refused, with who made it.
    if (stored && stored.query !== query && stored.version === opened?.version && !this.isKnown) await confirmReplaced(stored);
    try {
      const row = stored
        ? await call("PATCH", `${PATH}/${stored.id}`, { version: opened?.version, name, query })
        : await post(PATH, { name, query });
      this.#remember(row);
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "saved_query_changed") throw error;
      // From now on this version is the one that a second press replaces, knowingly.
      if (opened) this.opened = { ...opened, version: error.content.version };
      this.isKnown = true;
      error.content.detail += " Press Save again to replace that version with yours.";
      throw error;
    }
    dialog().close();
    await this.load();
    announce(`Saved as “${name}”.`);
  }
}

/** The id in the address. */
function named() {
  return new URLSearchParams(location.search).get(NAME);
}

/** @param {Saved} row */
function addressOf(row) {
  return `?${new URLSearchParams({ [NAME]: row.id })}`;
}

/** Ask before a saved text is replaced, and show it. @param {Saved} stored */
async function confirmReplaced({ name, query }) {
  const text = "Your text takes the place of this one, for everyone in the organization:";
  await confirm(`Replace “${name}”?`, text, "Replace", query);
}

function dialog() {
  return /** @type {HTMLDialogElement} */ (byId("save-dialog"));
}
