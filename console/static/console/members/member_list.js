// @ts-check
/** The list of members: searched, changed, disabled, removed. */

import { readAddress, writeAddress } from "../lib/address.js";
import { call, get } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { attempt, clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { dated } from "../lib/format.js";
import { createdBy } from "./created.js";
import { announce } from "../lib/status.js";
import { StoredForm, choicesField, wordsField } from "../lib/stored.js";
import { badges } from "./roles.js";
import { openReset } from "./reset.js";

/**
 * @typedef {object} Member
 * @property {string} user_id
 * @property {string} email
 * @property {boolean} email_verified
 * @property {string[]} roles
 * @property {string[]} derived_roles
 * @property {string[]} labels
 * @property {boolean} disabled
 * @property {string} created_at
 * @property {string | null} last_login_at
 */

const PATH = "/v1/members";
const PAUSE_MS = 250;

let ownId = "";
let isAdmin = false;
/** The next page's address, '' at the end. */
let next = "";
/** Which search the list shows: a slow answer to an earlier one comes too late. */
let searches = 0;
/** @type {Member | null} */
let edited = null;
/** @type {StoredForm} */
let changes;

/**
 * @param {string} userId the reader's own
 * @param {boolean} mayChange
 */
export function bindMembers(userId, mayChange) {
  ownId = userId;
  isAdmin = mayChange;
  const search = /** @type {HTMLFormElement} */ (byId("search"));
  // The palette leads to one member.
  const { email = "", role = "" } = readAddress();
  fieldOf("email").value = email;
  fieldOf("role").value = role;
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void attempt(byId("members"), showMembers), PAUSE_MS);
  });
  search.addEventListener("submit", (event) => event.preventDefault());
  onPress(byId("members-more"), byId("members"), showMore);
  bindEditor();
}

/** @param {"email" | "role"} name */
function fieldOf(name) {
  return /** @type {HTMLInputElement | HTMLSelectElement} */ (byId(`search-${name}`));
}

/** Show the first page of what is searched for. */
export async function showMembers() {
  const wanted = { email: fieldOf("email").value.trim(), role: fieldOf("role").value };
  writeAddress(wanted, { isStep: false });
  const used = Object.entries(wanted).filter(([, value]) => value);
  const query = new URLSearchParams([["page_size", "50"], ...used]);
  searches += 1;
  const mine = searches;
  const page = await get(`${PATH}?${query}`);
  if (mine !== searches) return;
  const none = element("li", wanted.role ? "No member with this role has such an address." : "No member has such an address.");
  none.className = "muted";
  byId("member-list").replaceChildren(...(page.results.length ? page.results.map(rowOf) : [none]));
  keepNext(page);
}

async function showMore() {
  const page = await get(next);
  byId("member-list").append(...page.results.map(rowOf));
  keepNext(page);
}

/** @param {{next: string | null}} page */
function keepNext(page) {
  next = page.next ? PATH + new URL(page.next).search : "";
  show(byId("members-more"), next !== "");
}

/** @param {Member} member */
function rowOf(member) {
  const row = stamp("member-row");
  fill(row, { email: member.email, about: aboutOf(member) });
  const derived = member.derived_roles.filter((role) => !member.roles.includes(role));
  const marks = [...member.roles, ...derived.map((role) => `${role} (by provider)`)];
  if (member.disabled) marks.push("disabled");
  if (member.user_id === ownId) marks.push("you");
  within(row, "[data-badges]").replaceChildren(...badges(marks));
  show(within(row, ".menu"), isAdmin);
  within(row, "summary").setAttribute("aria-label", `Actions: ${member.email}`);
  bindChange(row, member);
  bindResetOf(row, member);
  bindDisable(row, member);
  bindRemove(row, member);
  return row;
}

/** @param {Member} member */
function aboutOf(member) {
  const seen = member.last_login_at ? `last signed in ${dated(member.last_login_at)}` : "never signed in";
  const said = [`Since ${dated(member.created_at)}`, seen];
  if (!member.email_verified) said.push("address not verified");
  if (member.labels.length) said.push(member.labels.join(", "));
  return said.join(" · ");
}

/**
 * @param {HTMLElement} row
 * @param {string} action
 * @param {string} label for screen readers, which hear no row around a button
 */
function button(row, action, label) {
  const found = within(row, `[data-action="${action}"]`);
  found.setAttribute("aria-label", label);
  return found;
}

/**
 * @param {HTMLElement} row
 * @param {Member} member
 */
function bindChange(row, member) {
  onPress(button(row, "change", `Change: ${member.email}`), byId("members"), async () => {
    edited = member;
    const form = /** @type {HTMLFormElement} */ (byId("member-form"));
    clearProblem(form);
    byId("member-edit-title").textContent = member.email;
    // As it is stored now: the list may be older.
    changes.show(await get(`${PATH}/${member.user_id}`));
    form.dataset.draft = member.user_id;
    restoreDraft(form);
    editor().showModal();
  });
}

/**
 * @param {HTMLElement} row
 * @param {Member} member
 */
function bindResetOf(row, member) {
  const place = button(row, "reset", `Reset second factors: ${member.email}`);
  // One's own take a proof of one of them, on the page of security.
  show(place, member.user_id !== ownId);
  place.addEventListener("click", () => openReset(member));
}

/**
 * @param {HTMLElement} row
 * @param {Member} member
 */
function bindDisable(row, member) {
  const verb = member.disabled ? "Enable" : "Disable";
  const place = button(row, "disable", `${verb}: ${member.email}`);
  place.textContent = verb;
  onPress(place, byId("members"), async () => {
    if (!member.disabled) {
      await confirm(
        `Disable ${member.email}?`,
        `All sessions and trusted devices of this member end immediately. The account stays, and can be enabled again. ${await createdBy(member.user_id)}`,
        "Disable",
      );
    }
    await call("PATCH", `${PATH}/${member.user_id}`, { disabled: !member.disabled });
    await showMembers();
    announce(`${member.email} is ${member.disabled ? "enabled" : "disabled"}.`);
  });
}

/**
 * @param {HTMLElement} row
 * @param {Member} member
 */
function bindRemove(row, member) {
  onPress(button(row, "remove", `Remove: ${member.email}`), byId("members"), async () => {
    await confirm(
      `Remove ${member.email}?`,
      `The account is deleted, with its sessions, second factors and trusted devices. Until it is invited again, the person does not come back by a domain or a group at a provider. ${await createdBy(member.user_id)}`,
      "Remove",
    );
    await call("DELETE", `${PATH}/${member.user_id}`);
    await showMembers();
    announce(`${member.email} is removed.`);
  });
}

function editor() {
  return /** @type {HTMLDialogElement} */ (byId("member-edit"));
}

function bindEditor() {
  const form = /** @type {HTMLFormElement} */ (byId("member-form"));
  const labels = wordsField(byId("member-labels"));
  changes = new StoredForm(form, { roles: choicesField(form, "roles"), labels });
  onSubmit(form, async () => {
    if (!edited) return;
    // What is stored as far as the form knows, which shows a change elsewhere before it saves.
    const ends = changes.shown.roles.includes("admin") && !new FormData(form).getAll("roles").includes("admin");
    const said = ends ? await createdBy(edited.user_id) : "";
    if (said) await confirm(`Is ${edited.email} no admin any more?`, said, "Change");
    const changed = await changes.save("PATCH", `${PATH}/${edited.user_id}`);
    editor().close();
    // What one may see has changed with it.
    if (changed && edited.user_id === ownId) location.reload();
    await showMembers();
    announce(changed ? `${changed.email} is changed.` : "Nothing is changed.");
  });
}
