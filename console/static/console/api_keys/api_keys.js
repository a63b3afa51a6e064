// @ts-check
/** API keys of this environment: made, shown once, revoked. */

import { ofEnvironment } from "../frame/environment.js";
import { openPage } from "../frame/shell.js";
import { call, get, post } from "../lib/api.js";
import { bindCopies, copy } from "../lib/clipboard.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { day, moment } from "../lib/format.js";
import { clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { onLink } from "../lib/link.js";
import { badges } from "../members/roles.js";
import { announce } from "../lib/status.js";

/**
 * @typedef {object} Key
 * @property {string} id
 * @property {string} name
 * @property {string} hint
 * @property {string} role
 * @property {string[]} scopes
 * @property {"active" | "expired" | "revoked"} state
 * @property {string} created_by
 * @property {number} expires_at
 * @property {number | null} last_used_at
 * @property {string} last_used_address
 */

const PATH = "/v1/api-keys";
/** What each scope allows, and the roles that may have it. */
const SCOPES = /** @type {const} */ ([
  ["sql:read", "queries", "reader operator admin"],
  ["sql:write", "changes of rows", "operator admin"],
  ["schema:write", "changes of tables, with sql:write", "admin"],
  ["objects:read", "downloads", "reader operator admin"],
  ["objects:write", "uploads, deletions, purges", "operator admin"],
  ["buckets:read", "settings of buckets", "operator admin"],
  ["buckets:write", "buckets, hosts, origins", "admin"],
  ["nodes:read", "the cache's state", "reader operator admin"],
  ["environments:read", "this environment", "reader operator admin"],
]);

let isAdmin = false;
let text = "";
/** The address of the next page, '' after the last one. */
let next = "";

await openPage(
  ofEnvironment(async ({ roles, environment }) => {
    isAdmin = roles.includes("admin");
    const mayRead = isAdmin || roles.includes("operator");
    show(byId("api-keys"), mayRead);
    show(byId("api-keys-closed"), !mayRead);
    if (!mayRead) return;
    fill(byId("api-keys"), { place: environment.name });
    bindForm();
    bindCopies();
    onPress(byId("api-keys-more"), byId("api-keys"), showMore);
    onPress(byId("api-keys-refresh"), byId("api-keys"), async () => {
      await showAll();
      announce("The list is up to date.");
    });
    await showAll();
    // From the overview.
    onLink(({ new: isNew }) => {
      if (isNew && isAdmin) byId("api-key-new").click();
    });
  }),
);

function bindForm() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("api-key-dialog"));
  const form = /** @type {HTMLFormElement} */ (byId("api-key-form"));
  const role = /** @type {HTMLSelectElement} */ (byId("api-key-role"));
  byId("api-key-scopes").append(...SCOPES.map(boxOf));
  role.addEventListener("change", () => offerScopes(role.value));
  byId("api-key-new").addEventListener("click", () => {
    form.reset();
    restoreDraft(form);
    clearProblem(form);
    offerScopes(role.value);
    // Again: the role's scopes were ticked in the meantime.
    restoreDraft(form);
    dialog.showModal();
  });
  onSubmit(form, async ({ name, role, days }) => {
    const scopes = new FormData(form).getAll("scopes").map(String);
    const key = await post(PATH, { name, role, scopes, expires_in_days: Number(days) });
    dialog.close();
    showKey(key.key, scopes);
    byId("api-key-made").scrollIntoView({ block: "nearest" });
    byId("api-key-made-title").focus();
    await showAll();
  });
  byId("api-key-copy").addEventListener("click", () => copy(text, "The key is"));
  byId("api-key-kept").addEventListener("click", () => {
    showKey("", []);
  });
}

/**
 * @param {string} key '' hides it
 * @param {string[]} scopes
 */
function showKey(key, scopes) {
  text = key;
  fill(byId("api-key-made"), { key });
  byId("api-key-lines").textContent = key && linesFor(key, scopes);
  show(byId("api-key-made"), key !== "");
}

/**
 * Return what a shell runs as it is: a query, or who the key is where it may not run any.
 * @param {string} key
 * @param {string[]} scopes
 */
function linesFor(key, scopes) {
  const mayQuery = scopes.some((scope) => scope.startsWith("sql:"));
  const call = `curl -sS ${location.origin}/v1/${mayQuery ? "sql" : "whoami"} -H "Authorization: Bearer $ZONAL_TOKEN"`;
  const query = [`  -H 'Content-Type: application/json' -d '{"query": "SELECT 40 + 2 AS answer"}'`];
  return [`export ZONAL_TOKEN='${key}'`, ...(mayQuery ? [`${call} \\`, ...query] : [call])].join("\n");
}

/** @param {typeof SCOPES[number]} scope */
function boxOf([scope, about]) {
  const box = stamp("scope-row");
  fill(box, { scope, about: `– ${about}` });
  /** @type {HTMLInputElement} */ (within(box, "input")).value = scope;
  return box;
}

/**
 * Show and tick the scopes that a role may have.
 * @param {string} role
 */
function offerScopes(role) {
  for (const [scope, , roles] of SCOPES) {
    const input = /** @type {HTMLInputElement} */ (within(byId("api-key-scopes"), `[value="${scope}"]`));
    const isOffered = roles.split(" ").includes(role);
    show(/** @type {HTMLElement} */ (input.closest("label")), isOffered);
    input.checked = isOffered;
  }
}

async function showAll() {
  const page = await get(PATH);
  const rows = page.results.map(rowOf);
  byId("api-key-list").replaceChildren(...rows);
  show(byId("api-keys-none"), rows.length === 0);
  turn(page);
}

async function showMore() {
  const page = await get(next);
  byId("api-key-list").append(...page.results.map(rowOf));
  turn(page);
}

/** @param {{next: string | null}} page */
function turn(page) {
  next = page.next ? PATH + new URL(page.next).search : "";
  show(byId("api-keys-more"), next !== "");
}

/** @param {Key} key */
function rowOf(key) {
  const row = stamp("api-key-row");
  fill(row, { name: key.name, about: aboutOf(key), scopes: key.scopes.join(", ") });
  const marks = key.state === "active" ? [key.role] : [key.role, key.state];
  within(row, "[data-badges]").replaceChildren(...badges(marks));
  show(within(row, ".actions"), isAdmin && key.state === "active");
  const button = within(row, "button");
  button.setAttribute("aria-label", `Revoke: ${key.name}`);
  onPress(button, byId("api-keys"), async () => {
    await confirm(`Revoke ${key.name}?`, "Programs that use it are refused immediately.", "Revoke");
    await call("DELETE", `${PATH}/${key.id}`);
    await showAll();
    announce(`${key.name} is revoked.`);
  });
  return row;
}

/** @param {Key} key */
function aboutOf({ hint, created_by, expires_at, last_used_at, last_used_address }) {
  const used = last_used_at ? `last used ${moment(last_used_at)} from ${last_used_address}` : "never used";
  return [`…${hint}`, `by ${created_by}`, `until ${day(expires_at)}`, used].join(" · ");
}
