// @ts-check
/**
 * Forms that show what is stored. Only what the user changed is sent, with the version that the form
 * shows (If-Match). What was changed elsewhere since is not taken back: the form then shows it, keeps
 * what the user changed, and says so.
 */

import { call, get, versionOf } from "./api.js";
import { Problem } from "./problem.js";

/**
 * A field, by the API's name of it.
 * @typedef {{read: () => any, write: (value: any) => void}} Field
 */

export class StoredForm {
  /**
   * @param {HTMLFormElement} form
   * @param {Record<string, Field>} fields
   */
  constructor(form, fields) {
    this.form = form;
    this.fields = fields;
    /** @type {Record<string, any>} what the fields have shown, as they read it */
    this.shown = {};
  }

  /**
   * Show what the API returned.
   * @param {any} stored
   */
  show(stored) {
    this.#write(stored);
    this.shown = this.#read();
    this.form.dataset.version = versionOf(stored);
  }

  /** The fields that the user changed, with their values. */
  get changes() {
    const now = Object.entries(this.#read());
    return Object.fromEntries(now.filter(([name, value]) => !isSame(value, this.shown[name])));
  }

  /**
   * Send what the user changed; return what is stored then, null where nothing was changed.
   * @param {string} method
   * @param {string} path that is read and changed
   * @throws {Problem} that the form can show
   */
  async save(method, path) {
    const { changes } = this;
    if (!Object.keys(changes).length) return null;
    try {
      return await call(method, path, changes, { headers: { "If-Match": this.form.dataset.version ?? "" } });
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "changed_since_read") throw error;
      this.show(await get(path));
      this.#write(changes);
      throw this.#conflict(error);
    }
  }

  /** @param {Problem} problem */
  #conflict({ status, code, fields }) {
    const what = fields.map(({ field, message }) => `${labelOf(this.form, field)}: ${message}`);
    const title = "This was changed elsewhere after it was shown here.";
    const detail = [...what, "Your changes are not saved. Press the button again to apply them."].join(" ");
    return new Problem(status, { code, title, detail });
  }

  #read() {
    return Object.fromEntries(Object.entries(this.fields).map(([name, field]) => [name, field.read()]));
  }

  /** @param {any} values of some fields */
  #write(values) {
    for (const [name, field] of Object.entries(this.fields)) {
      if (name in values) field.write(values[name]);
    }
  }
}

/**
 * @param {HTMLElement} input
 * @returns {Field}
 */
export function textField(input) {
  const field = /** @type {HTMLInputElement} */ (input);
  return { read: () => field.value, write: (text) => (field.value = text) };
}

/**
 * Words of a list, set apart by commas.
 * @param {HTMLElement} input
 * @returns {Field}
 */
export function wordsField(input) {
  const field = /** @type {HTMLInputElement} */ (input);
  return { read: () => wordsOf(field.value), write: (words) => (field.value = words.join(", ")) };
}

/**
 * @param {HTMLElement} input
 * @returns {Field}
 */
export function switchField(input) {
  const box = /** @type {HTMLInputElement} */ (input);
  return { read: () => box.checked, write: (isOn) => (box.checked = isOn) };
}

/**
 * The checked ones of a form's boxes with a name.
 * @param {HTMLFormElement} form
 * @param {string} name
 * @returns {Field}
 */
export function choicesField(form, name) {
  const boxes = () => /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll(`input[name="${name}"]`)]);
  return {
    read: () => boxes().filter((box) => box.checked).map((box) => box.value),
    write(values) {
      for (const box of boxes()) box.checked = values.includes(box.value);
    },
  };
}

/**
 * @param {string} text words set apart by commas
 * @returns {string[]}
 */
export function wordsOf(text) {
  return text.split(",").map((word) => word.trim()).filter(Boolean);
}

/**
 * Return what a form calls a field, and the API's name for one that it does not show.
 * @param {HTMLFormElement} form
 * @param {string} name
 */
function labelOf(form, name) {
  const inputs = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll(`[name="${CSS.escape(name)}"]`));
  const label = inputs.length > 1 ? inputs[0].closest("fieldset")?.querySelector("legend") : inputs[0]?.labels?.[0];
  if (!label) return name;
  const copy = /** @type {HTMLElement} */ (label.cloneNode(true));
  for (const aside of copy.querySelectorAll(".hint, .optional")) aside.remove();
  return copy.textContent?.trim() || name;
}

/**
 * @param {any} left
 * @param {any} right
 */
function isSame(left, right) {
  return JSON.stringify(left) === JSON.stringify(right);
}
