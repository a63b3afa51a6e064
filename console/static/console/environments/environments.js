// @ts-check
/** Environments: what each holds; create, clone, rename, delete. */

import { kindOf, switchTo } from "../frame/environment.js";
import { openPage } from "../frame/shell.js";
import { call, get, post } from "../lib/api.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { bytes, count, dated, share } from "../lib/format.js";
import { clearProblem, mark, onPress, onSubmit } from "../lib/forms.js";
import { announce, tell } from "../lib/status.js";
import { StoredForm, textField } from "../lib/stored.js";
import { tellOthers } from "../lib/tabs.js";
import { openExtensions } from "./extensions.js";

/** @typedef {import("../frame/shell.js").Who} Who */
/** @typedef {import("../frame/shell.js").Place} Place */
/** @typedef {Record<string, number | null>} Contents */

const PATH = "/v1/environments";
/** What a database's state means to a reader; nothing for one that works. */
const STATES = new Map([
  ["moving", "its database is being moved"],
  ["copying", "its database is being cloned"],
  ["failed", "its clone failed"],
]);
/** A clone and a move end by themselves: the page looks again. */
const LOOK_MS = 2000;

/** @type {Place | null} of the open dialog */
let chosen = null;
const renamed = new StoredForm(formOf("rename-form"), { name: textField(byId("rename-name")) });

await openPage(async (who) => {
  bindDialogs(who);
  byId("environment-list").replaceChildren(...who.environments.map((place) => rowOf(place, who)));
  show(byId("environments-none"), who.roles.includes("admin") && who.environments.every((place) => place.built_in));
});

/**
 * @param {Place} place
 * @param {Who} who
 */
function rowOf(place, who) {
  const row = stamp("environment-row");
  const isCurrent = place.id === who.environment.id;
  const isAdmin = who.roles.includes("admin");
  row.dataset.place = kindOf(place);
  fill(row, { name: place.name, id: place.id, about: "" });
  const marks = [place.built_in ? "built in" : "", isCurrent ? "you are here" : ""].filter(Boolean);
  within(row, "[data-badges]").append(
    ...marks.map((mark) => {
      const badge = element("span", mark);
      badge.className = isCurrent && mark !== "built in" ? "badge accent" : "badge";
      return badge;
    }),
  );
  const mayRead = isAdmin || who.roles.includes("operator");
  bindActions(row, place, { isCurrent, isAdmin, mayRead });
  if (mayRead) void showContents(row, place).catch(tell);
  else show(within(row, ".numbers"), false);
  return row;
}

/**
 * @param {HTMLElement} row
 * @param {Place} place
 * @param {{isCurrent: boolean, isAdmin: boolean, mayRead: boolean}} is
 */
function bindActions(row, place, { isCurrent, isAdmin, mayRead }) {
  /** @type {[string, boolean, () => void | Promise<void>][]} */
  const actions = [
    ["switch", !isCurrent, () => switchTo(place)],
    ["rename", isAdmin, () => openRename(place)],
    ["clone", isAdmin, () => openNew(place.id)],
    ["extensions", mayRead, () => openExtensions(place, isAdmin)],
    ["delete", isAdmin && !place.built_in, () => openDelete(place)],
  ];
  for (const [name, isShown, action] of actions) {
    const button = within(row, `[data-action="${name}"]`);
    button.setAttribute("aria-label", `${button.textContent}: ${place.name}`);
    show(button, isShown);
    onPress(button, byId("environment-root"), async () => {
      await action();
    });
  }
}

/**
 * @param {HTMLElement} row
 * @param {Place} place
 */
async function showContents(row, place) {
  const path = `${PATH}/${encodeURIComponent(place.id)}`;
  const [held, detail] = await Promise.all([get(`${path}/contents`), get(path)]);
  fill(row, {
    about: [`since ${dated(detail.created_at)}`, stateOf(detail)].filter(Boolean).join(", "),
    tables: known(held.tables, String),
    database: known(held.database_bytes, bytes),
    objects: held.objects === null ? "unknown" : `${held.objects.toLocaleString()} (${bytes(held.object_bytes)})`,
  });
  within(row, ".numbers").removeAttribute("aria-busy");
  if (["moving", "copying"].includes(detail.database_state)) setTimeout(() => look(row, place), LOOK_MS);
}

/**
 * @param {HTMLElement} row
 * @param {Place} place
 */
function look(row, place) {
  // A page in the background shows its progress to no one.
  if (document.hidden) setTimeout(() => look(row, place), LOOK_MS);
  else void showContents(row, place).catch(tell);
}

/** @param {{database_state: string, database_progress: number | null, database_error: string | null}} detail */
function stateOf({ database_state: state, database_progress: progress, database_error: error }) {
  const said = STATES.get(state);
  if (error) return `${said}: ${error}`;
  return said && progress !== null ? `${said} (${share(progress)})` : said;
}

/**
 * @param {number | null} value
 * @param {(value: number) => string} write
 */
function known(value, write) {
  return value === null ? "unknown" : write(value);
}

// --- dialogs ----------------------------------------------------------------------------------

/** @param {Who} who */
function bindDialogs(who) {
  const from = /** @type {HTMLSelectElement} */ (byId("environment-from"));
  from.replaceChildren(
    new Option("empty", ""),
    ...who.environments.map((place) => new Option(`a clone of ${place.name}`, place.id)),
  );
  byId("environment-new").addEventListener("click", () => openNew(""));
  byId("environment-first").addEventListener("click", () => openNew("live"));
  onSubmit(formOf("environment-form"), async ({ id, name, from: source }) => {
    await post(PATH, { id, ...(name ? { name } : {}), ...(source ? { from: source } : {}) });
    reload();
  });
  onSubmit(formOf("rename-form"), async () => {
    await renamed.save("PATCH", `${PATH}/${encodeURIComponent(chosen?.id ?? "")}`);
    reload();
  });
  bindDelete(who);
}

/** @param {Who} who */
function bindDelete(who) {
  onSubmit(formOf("delete-form"), async ({ typed }) => {
    if (!chosen) return;
    if (typed !== chosen.id) {
      mark(byId("delete-form"), "typed", `Type ${chosen.id}.`);
      byId("delete-name").focus();
      return;
    }
    const isCurrent = chosen.id === who.environment.id;
    // The session would end with the environment: it goes on in the built-in one.
    if (isCurrent) await goOnIn("sandbox");
    try {
      await call("DELETE", `${PATH}/${encodeURIComponent(chosen.id)}`);
    } catch (error) {
      if (isCurrent) await goBack(chosen);
      throw error;
    }
    reload();
  });
}

/** Let the session go on in another environment, in every tab. @param {string} id */
async function goOnIn(id) {
  try {
    await post("/v1/auth/switch", { environment: id });
  } finally {
    // Without an answer it may have been done.
    tellOthers();
  }
}

/**
 * Let the session go on where the page says that it is; where that fails, show where it is.
 * @param {Place} place
 */
async function goBack(place) {
  try {
    await goOnIn(place.id);
  } catch {
    reload();
  }
}

/** @param {string} from an environment to clone, or empty */
function openNew(from) {
  const form = formOf("environment-form");
  form.reset();
  clearProblem(form);
  restoreDraft(form);
  if (from) /** @type {HTMLSelectElement} */ (byId("environment-from")).value = from;
  dialogOf("environment-dialog").showModal();
}

/** @param {Place} place */
async function openRename(place) {
  chosen = place;
  const field = /** @type {HTMLInputElement} */ (byId("rename-name"));
  const form = formOf("rename-form");
  clearProblem(form);
  renamed.show(await get(`${PATH}/${encodeURIComponent(place.id)}`));
  form.dataset.draft = place.id;
  restoreDraft(form);
  dialogOf("rename-dialog").showModal();
  field.select();
}

/** @param {Place} place */
async function openDelete(place) {
  chosen = place;
  const held = await get(`${PATH}/${encodeURIComponent(place.id)}/contents`);
  formOf("delete-form").reset();
  clearProblem(formOf("delete-form"));
  byId("delete-dialog-title").textContent = `Delete ${place.name}?`;
  byId("delete-cost").replaceChildren(...costOf(held).map((line) => element("li", line)));
  dialogOf("delete-dialog").showModal();
}

/** @param {Contents} held */
function costOf({ tables, database_bytes, buckets, objects, object_bytes, access_keys }) {
  const isCounted = objects !== null && buckets !== null && access_keys !== null;
  return [
    tables === null ? "its database" : `${count(tables, "table")}, ${bytes(database_bytes ?? 0)} of database`,
    isCounted
      ? `${count(buckets, "bucket")} with ${count(objects, "object")}, ${bytes(object_bytes ?? 0)}`
      : "its buckets with their objects",
    isCounted ? count(access_keys, "access key") : "its access keys",
  ];
}

/** Reload the page: the frame names the environments as well, in every tab. */
function reload() {
  announce("Done.");
  tellOthers();
  location.reload();
}

/** @param {string} id */
function formOf(id) {
  return /** @type {HTMLFormElement} */ (byId(id));
}

/** @param {string} id */
function dialogOf(id) {
  return /** @type {HTMLDialogElement} */ (byId(id));
}
