// @ts-check
/** Forms: one submission at a time, errors next to their fields. */

import { element, show, within } from "./dom.js";
import { forgetDraft, keepDraft } from "./drafts.js";
import { keepFocus, placeOf } from "./focus.js";
import { Cancelled, Problem, sentenceOf } from "./problem.js";

/** @typedef {Record<string, string>} Values */
/** @typedef {{root: HTMLElement, done: Promise<void>}} Act */

/** What a section loads, by the section: a press waits for it. @type {WeakMap<HTMLElement, Promise<void>>} */
const loads = new WeakMap();
/** Buttons and forms whose action is in progress, with their action. @type {Map<HTMLElement, Act>} */
const acting = new Map();
/** Buttons whose action shows its own errors, while it is in progress. @type {WeakSet<HTMLElement>} */
const running = new WeakSet();

// Opened again, a dialog is for something else: what is pressed in it is no repetition, and waits for
// what the page still loads after the action that closed it.
document.addEventListener("close", ({ target: dialog }) => {
  for (const [pressed, { root, done }] of acting) {
    if (!(dialog instanceof HTMLDialogElement && dialog.contains(pressed))) continue;
    loads.set(root, done.catch(() => {}));
    acting.delete(pressed);
  }
}, true);

/**
 * Run an action when a form is submitted; the form shows its errors.
 * @param {HTMLFormElement} form
 * @param {(values: Values) => Promise<void>} action
 */
export function onSubmit(form, action) {
  keepDraft(form);
  form.addEventListener("click", (event) => {
    if (isRepeated(event) && event.target instanceof Element && event.target.closest("button[type=submit]")) event.preventDefault();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.dataset.busy === undefined) clearProblem(form);
    if (!isComplete(form)) return;
    await act(form, form, async () => {
      await action(valuesOf(form));
      forgetDraft(form);
    });
  });
}

/**
 * True for the second click of a double click: the answer to the first may be there already, and what
 * it did is not wanted twice.
 * @param {MouseEvent} event
 */
function isRepeated(event) {
  return event.detail > 1;
}

/**
 * Run an action once, even if it is requested again while it is in progress, and after what its
 * section loads.
 * @param {HTMLElement} pressed
 * @param {HTMLElement} root
 * @param {() => Promise<void>} action
 */
async function act(pressed, root, action) {
  if (acting.has(pressed)) return;
  const place = placeOf(pressed);
  const done = runAfterLoad(pressed, root, action);
  acting.set(pressed, { root, done });
  try {
    await done;
  } finally {
    if (acting.get(pressed)?.done === done) acting.delete(pressed);
    if (pressed !== root) keepFocus(pressed, place, root);
  }
}

/**
 * @param {HTMLElement} pressed
 * @param {HTMLElement} root
 * @param {() => Promise<void>} action
 */
async function runAfterLoad(pressed, root, action) {
  await loads.get(root);
  // Beside another action of this section, or for a row that the load has replaced, it does nothing.
  if (root.dataset.busy === undefined && pressed.isConnected) await run(root, action);
}

/**
 * Load what a section shows, which shows its errors.
 * @param {HTMLElement} root with a [data-problem] inside
 * @param {() => Promise<void>} action
 */
export async function attempt(root, action) {
  const load = run(root, action, () => void attempt(root, action));
  const heard = load.catch(() => {});
  loads.set(root, heard);
  try {
    await load;
  } finally {
    if (loads.get(root) === heard) loads.delete(root);
  }
}

/**
 * @param {HTMLElement} root
 * @param {() => Promise<void>} action
 * @param {() => void} [again] does the same, where that changes nothing
 */
async function run(root, action, again) {
  clearProblem(root);
  root.dataset.busy = "";
  root.setAttribute("aria-busy", "true");
  try {
    await action();
  } catch (error) {
    showProblem(root, error);
    if (error instanceof Problem && error.code === "no_answer") offerWayOn(root, error.content.is_read ? again : undefined);
  } finally {
    delete root.dataset.busy;
    root.removeAttribute("aria-busy");
  }
}

/**
 * Run an action when a button is pressed.
 * @param {HTMLElement} button
 * @param {HTMLElement} root where a refusal is shown
 * @param {() => Promise<void>} action
 */
export function onPress(button, root, action) {
  button.addEventListener("click", (event) => {
    if (!isRepeated(event)) void act(button, root, action);
  });
}

/**
 * Run an action that shows its own errors when a button is pressed, once while it is in progress.
 * @param {HTMLElement} button
 * @param {() => Promise<void> | void} action
 */
export function onClick(button, action) {
  button.addEventListener("click", async (event) => {
    if (isRepeated(event) || running.has(button)) return;
    running.add(button);
    try {
      await action();
    } finally {
      running.delete(button);
    }
  });
}

/**
 * @param {HTMLElement} root
 * @param {unknown} error
 */
export function showProblem(root, error) {
  if (error instanceof Cancelled) return;
  if (!(error instanceof Problem)) {
    say(root, sentenceOf(error));
    throw error;
  }
  const homeless = error.fields.filter((wrong) => !mark(root, wrong.field, wrong.message));
  const first = root.querySelector('[aria-invalid="true"]');
  if (!first || homeless.length) {
    say(root, [error.sentence, ...homeless.map((wrong) => wrong.message)].join(" "));
  }
  const again = root.dataset.retry ? root.querySelector(`[name="${root.dataset.retry}"]`) : null;
  const next = first ?? again;
  if (next instanceof HTMLInputElement) {
    next.focus();
    next.select();
  }
}

/**
 * Offer to repeat a read that got no answer, or to load what is stored now: the rest of the action may
 * have been done.
 * @param {HTMLElement} root
 * @param {() => void} [again]
 */
function offerWayOn(root, again) {
  const button = element("button", again ? "Try again" : "Reload the page");
  button.setAttribute("type", "button");
  button.className = "link";
  button.addEventListener("click", again ?? (() => location.reload()));
  within(root, "[data-problem]").append(" ", button);
}

/** @param {HTMLElement} root */
export function clearProblem(root) {
  say(root, "");
  for (const field of root.querySelectorAll('[aria-invalid="true"]')) {
    field.removeAttribute("aria-invalid");
    const note = document.getElementById(`${field.id}-error`);
    if (note) {
      note.textContent = "";
      show(note, false);
    }
  }
}

/**
 * @param {HTMLElement} root
 * @param {string} text
 */
function say(root, text) {
  const place = within(root, "[data-problem]");
  place.textContent = text;
  show(place, text !== "");
}

/**
 * Mark a field as wrong; say whether the form has it.
 * @param {HTMLElement} root
 * @param {string} name
 * @param {string} message
 */
export function mark(root, name, message) {
  const field = root.querySelector(`[name="${CSS.escape(name)}"]`);
  const note = field && document.getElementById(`${field.id}-error`);
  if (!field || !note) return false;
  field.setAttribute("aria-invalid", "true");
  note.textContent = message;
  show(note);
  return true;
}

/** @param {HTMLFormElement} form */
function isComplete(form) {
  /** @type {HTMLInputElement | null} */
  let first = null;
  for (const field of form.querySelectorAll("input[required], textarea[required]")) {
    const input = /** @type {HTMLInputElement} */ (field);
    if (input.value.trim() !== "" || input.closest("[hidden]")) continue;
    mark(form, input.name, "This is needed.");
    first ??= input;
  }
  first?.focus();
  return first === null;
}

/**
 * Return the values of a form's visible fields.
 * @param {HTMLFormElement} form
 * @returns {Values}
 */
function valuesOf(form) {
  /** @type {Values} */
  const values = {};
  for (const [name, value] of new FormData(form)) values[name] = String(value);
  return values;
}
