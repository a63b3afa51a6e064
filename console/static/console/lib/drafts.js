// @ts-check
/**
 * What a user has typed and not sent: it survives a reload and the end of a session in this browser,
 * and goes when the user signs out. All of it is of one user in one environment. A form with `data-draft`
 * is of this tab alone, without passwords, codes and credentials, until it was accepted. The attribute's
 * value says what the form is about, such as a bucket, where it is used for several. Only the fields that
 * the user has changed are kept, with the version (`data-version`) of what they change: what is stored
 * may be another one when the draft is shown again.
 */

import { element } from "./dom.js";

const PREFIX = "zonal-draft:";
const OWNER = `${PREFIX}owner`;
const KEPT = 'input:not([type="password"], [type="file"], [autocomplete="one-time-code"], [name^="secret."]), select, textarea';

/** The environment that the page shows, '' where it shows none. */
let place = "";

/** A text under a name, of one user in one environment. */
export class Draft {
  /**
   * @param {{user_id: string, org_id: number, environment: {id: string}}} who
   * @param {string} name
   * @param {Storage} [storage]
   */
  constructor(who, name, storage = localStorage) {
    this.storage = storage;
    this.key = `${PREFIX}${who.org_id}:${who.user_id}:${who.environment.id}:${name}`;
  }

  /** @returns {string | null} */
  read() {
    return this.storage.getItem(this.key);
  }

  /** @param {string} text */
  keep(text) {
    try {
      this.storage.setItem(this.key, text);
    } catch {
      // Full or forbidden: the page works without.
    }
  }
}

/** A text of this tab alone. A new tab begins with what was last typed in any. */
export class TabDraft extends Draft {
  /** True if there is one of this tab. */
  get isOwn() {
    return sessionStorage.getItem(this.key) !== null;
  }

  read() {
    return sessionStorage.getItem(this.key) ?? super.read();
  }

  /** @param {string} text */
  keep(text) {
    super.keep(text);
    try {
      sessionStorage.setItem(this.key, text);
    } catch {
      // Full: an older text must not come back.
      sessionStorage.removeItem(this.key);
    }
  }
}

/** The values of a form of this tab alone; a new tab begins with an empty one. */
export class FormDraft extends Draft {
  /**
   * @param {ConstructorParameters<typeof Draft>[0]} who
   * @param {string} name
   */
  constructor(who, name) {
    super(who, name, sessionStorage);
  }

  /** @returns {any} null where there is none */
  values() {
    return JSON.parse(this.read() ?? "null");
  }

  /** @param {any} values as JSON can hold them */
  keepValues(values) {
    this.keep(JSON.stringify(values));
  }

  forget() {
    this.storage.removeItem(this.key);
  }
}

/**
 * Forget what someone else typed into the forms of this tab, whose session ended without signing out.
 * From now on drafts of forms are those of an environment.
 * @param {{user_id: string, org_id: number, environment: {id: string}}} who
 */
export function claimDrafts({ user_id, org_id, environment }) {
  place = environment.id;
  const owner = `${org_id}:${user_id}`;
  if (sessionStorage.getItem(OWNER) !== owner) forgetIn(sessionStorage);
  sessionStorage.setItem(OWNER, owner);
}

/** Forget the drafts of everyone who used this browser. */
export function forgetDrafts() {
  for (const storage of [localStorage, sessionStorage]) forgetIn(storage);
}

/** @param {Storage} storage */
function forgetIn(storage) {
  for (const key of Object.keys(storage)) {
    if (key.startsWith(PREFIX)) storage.removeItem(key);
  }
}

/**
 * Fill in a form's draft, and keep what is typed from now on; until it is closed, if in a dialog.
 * @param {HTMLFormElement} form
 */
export function keepDraft(form) {
  if (form.dataset.draft === undefined) return;
  restoreDraft(form);
  form.addEventListener("input", ({ target }) => {
    const field = fieldsOf(form).find((each) => each === target);
    if (form.dataset.draft === undefined || !field) return;
    const { version = form.dataset.version, typed } = draftOf(form);
    const draft = { version, typed: { ...typed, [nameOf(field)]: valueOf(field) } };
    sessionStorage.setItem(keyOf(form), JSON.stringify(draft));
  });
  form.closest("dialog")?.addEventListener("close", () => forgetDraft(form));
}

/**
 * Fill in a form's draft, as after a reset. On the page itself a line says so: the form may show what
 * is stored, from which the draft differs.
 * @param {HTMLFormElement} form
 */
export function restoreDraft(form) {
  if (form.dataset.draft === undefined) return;
  form.querySelector(":scope > .draft-note")?.remove();
  const before = typedIn(form);
  const { version } = form.dataset;
  const draft = draftOf(form);
  write(form, draft.typed);
  if (JSON.stringify(typedIn(form)) === JSON.stringify(before)) return;
  if (draft.version !== undefined) form.dataset.version = draft.version;
  if (form.closest("dialog")) return;
  form.closest("details")?.setAttribute("open", "");
  const discard = element("button", "Discard");
  discard.setAttribute("type", "button");
  discard.className = "link";
  discard.addEventListener("click", () => {
    write(form, before);
    if (version !== undefined) form.dataset.version = version;
    forgetDraft(form);
  });
  const note = element("p", "What you typed here before is not sent yet. ");
  note.className = "hint draft-note";
  note.append(discard);
  form.prepend(note);
}

/**
 * Forget the draft of a form that was accepted.
 * @param {HTMLFormElement} form
 */
export function forgetDraft(form) {
  if (form.dataset.draft === undefined) return;
  sessionStorage.removeItem(keyOf(form));
  form.querySelector(":scope > .draft-note")?.remove();
}

/** @param {HTMLFormElement} form */
function keyOf(form) {
  return `${PREFIX}${place} ${location.pathname} ${form.id} ${form.dataset.draft}`;
}

/**
 * @param {HTMLFormElement} form
 * @returns {{version?: string, typed: Record<string, string | boolean>}}
 */
function draftOf(form) {
  return { typed: {}, ...JSON.parse(sessionStorage.getItem(keyOf(form)) ?? "{}") };
}

/**
 * @param {HTMLFormElement} form
 * @returns {Record<string, string | boolean>} by the fields' names
 */
function typedIn(form) {
  return Object.fromEntries(fieldsOf(form).map((field) => [nameOf(field), valueOf(field)]));
}

/**
 * @param {HTMLFormElement} form
 * @param {Record<string, any>} typed
 */
function write(form, typed) {
  for (const field of fieldsOf(form)) {
    const name = nameOf(field);
    if (!(name in typed)) continue;
    if (isBox(field)) field.checked = typed[name];
    else field.value = typed[name];
  }
}

/** @param {HTMLFormElement} form */
function fieldsOf(form) {
  const found = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll(KEPT));
  return [...found].filter((field) => field.id || field.name);
}

/** @param {HTMLInputElement} field */
function nameOf(field) {
  return field.id || `${field.name}=${isBox(field) ? field.value : ""}`;
}

/** @param {HTMLInputElement} field */
function valueOf(field) {
  return isBox(field) ? field.checked : field.value;
}

/** @param {HTMLInputElement} field */
function isBox(field) {
  return field.type === "checkbox" || field.type === "radio";
}
