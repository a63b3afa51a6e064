// @ts-check
/**
 * What a user has typed and not sent: it survives a reload and the end of a session in this browser,
 * and goes when the user signs out. Texts are kept for the user; a form with `data-draft` for this
 * tab alone, without passwords and codes, until it was accepted.
 */

const PREFIX = "zonal-draft:";
const KEPT = 'input:not([type="password"], [type="file"], [autocomplete="one-time-code"]), select, textarea';

/** A text under a name, of one user in one organization. */
export class Draft {
  /**
   * @param {{user_id: string, org_id: number}} who
   * @param {string} name
   */
  constructor(who, name) {
    this.key = `${PREFIX}${who.org_id}:${who.user_id}:${name}`;
  }

  /** @returns {string | null} */
  read() {
    return localStorage.getItem(this.key);
  }

  /** @param {string} text */
  keep(text) {
    try {
      localStorage.setItem(this.key, text);
    } catch {
      // Full or forbidden: the page works without.
    }
  }
}

/** The values of a form, of one user in one organization. */
export class FormDraft extends Draft {
  /** @returns {any} null where there is none */
  values() {
    return JSON.parse(this.read() ?? "null");
  }

  /** @param {any} values as JSON can hold them */
  keepValues(values) {
    this.keep(JSON.stringify(values));
  }

  forget() {
    localStorage.removeItem(this.key);
  }
}

/** Forget the drafts of everyone who used this browser. */
export function forgetDrafts() {
  for (const storage of [localStorage, sessionStorage]) {
    for (const key of Object.keys(storage)) {
      if (key.startsWith(PREFIX)) storage.removeItem(key);
    }
  }
}

/**
 * Fill in a form's draft, and keep what is typed from now on; until it is closed, if in a dialog.
 * @param {HTMLFormElement} form
 */
export function keepDraft(form) {
  if (form.dataset.draft === undefined) return;
  restoreDraft(form);
  form.addEventListener("input", () => {
    if (form.dataset.draft === undefined) return;
    const typed = fieldsOf(form).map((field) => [nameOf(field), isBox(field) ? field.checked : field.value]);
    sessionStorage.setItem(keyOf(form), JSON.stringify(Object.fromEntries(typed)));
  });
  form.closest("dialog")?.addEventListener("close", () => forgetDraft(form));
}

/**
 * Fill in a form's draft, as after a reset.
 * @param {HTMLFormElement} form
 */
export function restoreDraft(form) {
  if (form.dataset.draft === undefined) return;
  const draft = JSON.parse(sessionStorage.getItem(keyOf(form)) ?? "{}");
  for (const field of fieldsOf(form)) {
    const name = nameOf(field);
    if (!(name in draft)) continue;
    if (isBox(field)) field.checked = draft[name];
    else field.value = draft[name];
  }
}

/**
 * Forget the draft of a form that was accepted.
 * @param {HTMLFormElement} form
 */
export function forgetDraft(form) {
  if (form.dataset.draft !== undefined) sessionStorage.removeItem(keyOf(form));
}

/** @param {HTMLFormElement} form */
function keyOf(form) {
  return `${PREFIX}${location.pathname} ${form.id}`;
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
function isBox(field) {
  return field.type === "checkbox" || field.type === "radio";
}
