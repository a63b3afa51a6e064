// @ts-check
/** Webhooks: added, changed, tested, switched off and on, removed; a secret is shown once. */

import { openPage } from "../frame/shell.js";
import { call, get, list, post } from "../lib/api.js";
import { copy } from "../lib/clipboard.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { dated } from "../lib/format.js";
import { clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { badges } from "../members/roles.js";
import { announce } from "../lib/status.js";
import { StoredForm, choicesField, textField } from "../lib/stored.js";
import { bindDeliveries, hideDeliveries, showDeliveries } from "./deliveries.js";

/**
 * @typedef {object} Webhook
 * @property {string} id
 * @property {string} url
 * @property {string} description
 * @property {string[]} events
 * @property {"enabled" | "disabled"} state
 * @property {string} disabled_reason
 * @property {string | null} failing_since
 * @property {string} created_by
 */

const PATH = "/v1/webhooks";
const REASONS = new Map([
  ["by_admin", "switched off by an admin"],
  ["failing", "switched off: nothing succeeded for days"],
  ["gone", "switched off: it answered 410 Gone"],
]);

let isAdmin = false;
let secret = "";
/** @type {Webhook | null} whose secret is shown */
let shown = null;
/** @type {Webhook | null} of the open dialog; null adds one */
let chosen = null;
/** @type {StoredForm} */
let changes;

await openPage(async ({ roles }) => {
  isAdmin = roles.includes("admin");
  const mayRead = isAdmin || roles.includes("operator");
  show(byId("webhooks"), mayRead);
  show(byId("webhooks-closed"), !mayRead);
  if (!mayRead) return;
  bindForm();
  bindDeliveries(isAdmin);
  byId("webhook-copy").addEventListener("click", () => copy(secret, "The secret is"));
  byId("webhook-kept").addEventListener("click", () => showSecret("", null));
  onPress(byId("webhook-try"), byId("webhooks"), async () => {
    if (shown) await test(shown);
  });
  await showAll();
});

function bindForm() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("webhook-dialog"));
  const form = /** @type {HTMLFormElement} */ (byId("webhook-form"));
  changes = new StoredForm(form, {
    url: textField(byId("webhook-url")),
    description: textField(byId("webhook-description")),
    events: choicesField(form, "events"),
  });
  byId("webhook-new").addEventListener("click", () => open(null));
  onSubmit(form, async ({ url, description }) => {
    const body = { url, description, events: new FormData(form).getAll("events").map(String) };
    if (chosen) await changes.save("PATCH", `${PATH}/${chosen.id}`);
    else {
      const made = await post(PATH, body);
      showSecret(made.secret, made);
    }
    dialog.close();
    await showAll();
  });
}

/** @param {Webhook | null} webhook as it is stored */
function open(webhook) {
  chosen = webhook;
  const form = /** @type {HTMLFormElement} */ (byId("webhook-form"));
  form.reset();
  clearProblem(form);
  byId("webhook-dialog-title").textContent = webhook ? "Change the webhook" : "New webhook";
  if (webhook) changes.show(webhook);
  // A draft is of a new one: what is changed is shown as it is.
  if (webhook) delete form.dataset.draft;
  else form.dataset.draft = "";
  restoreDraft(form);
  /** @type {HTMLDialogElement} */ (byId("webhook-dialog")).showModal();
}

/**
 * @param {string} text '' hides it
 * @param {Webhook | null} webhook
 */
function showSecret(text, webhook) {
  secret = text;
  shown = webhook;
  show(byId("webhook-try"), webhook?.state === "enabled");
  fill(byId("webhook-made"), { secret: text });
  show(byId("webhook-made"), text !== "");
  if (text) byId("webhook-made-title").focus();
}

async function showAll() {
  const rows = await list(PATH);
  byId("webhook-list").replaceChildren(...rows.map(rowOf));
  show(byId("webhooks-none"), rows.length === 0);
}

/** @param {Webhook} webhook */
async function test(webhook) {
  await call("POST", `${PATH}/${webhook.id}/test`);
  announce("A test event is on its way.");
  await showDeliveries(webhook);
}

/** @param {Webhook} webhook */
function rowOf(webhook) {
  const { id, url, events, state } = webhook;
  const row = stamp("webhook-row");
  fill(row, { url, about: aboutOf(webhook), events: events.join(", ") });
  within(row, "[data-badges]").replaceChildren(...badges(state === "enabled" ? [] : ["off"]));
  const path = `${PATH}/${id}`;
  within(row, '[data-action="toggle"]').textContent = state === "enabled" ? "Switch off" : "Switch on";
  bind(row, webhook, "deliveries", true, () => showDeliveries(webhook));
  bind(row, webhook, "test", isAdmin && state === "enabled", () => test(webhook));
  bind(row, webhook, "change", isAdmin, async () => open(await get(path)));
  bind(row, webhook, "rotate", isAdmin, async () => {
    await confirm("Make a new secret?", "The present one signs as well for 24 hours.", "New secret");
    showSecret((await post(`${path}/secret/rotate`)).secret, webhook);
  });
  bind(row, webhook, "toggle", isAdmin, async () => {
    if (state === "enabled") {
      await confirm(`Switch off the webhook to ${url}?`, "What waits for it fails, and events that happen while it is off are not sent to it.", "Switch off");
    }
    await call("PATCH", path, { state: state === "enabled" ? "disabled" : "enabled" });
    await showAll();
  });
  bind(row, webhook, "remove", isAdmin, async () => {
    await confirm(`Remove the webhook to ${url}?`, "Its deliveries are removed as well.", "Remove");
    await call("DELETE", path);
    hideDeliveries();
    if (shown?.id === id) showSecret("", null);
    await showAll();
    announce("The webhook is removed.");
  });
  return row;
}

/**
 * @param {HTMLElement} row
 * @param {Webhook} webhook
 * @param {string} name
 * @param {boolean} isShown
 * @param {() => Promise<void>} action
 */
function bind(row, webhook, name, isShown, action) {
  const button = within(row, `[data-action="${name}"]`);
  button.setAttribute("aria-label", `${button.textContent}: ${webhook.url}`);
  show(button, isShown);
  onPress(button, byId("webhooks"), action);
}

/** @param {Webhook} webhook */
function aboutOf({ description, created_by, state, disabled_reason, failing_since }) {
  const health = state === "enabled" ? failing_since && `failing since ${dated(failing_since)}` : REASONS.get(disabled_reason);
  return [description, `by ${created_by}`, health].filter(Boolean).join(" · ");
}
