// @ts-check
/** What was sent to one webhook: statuses and times; sent again on request. */

import { call, get } from "../lib/api.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { moment } from "../lib/format.js";
import { onPress } from "../lib/forms.js";
import { badges } from "../members/roles.js";
import { announce } from "../lib/status.js";

/**
 * @typedef {object} Delivery
 * @property {string} id
 * @property {string} event
 * @property {string} state
 * @property {number} attempts
 * @property {number | null} last_status
 * @property {string} last_error
 * @property {string} created_at
 * @property {string | null} next_attempt_at
 */

/** Why there was no status. */
const ERRORS = new Map([
  ["timeout", "no answer in time"],
  ["not_reached", "not reached"],
  ["name_not_resolved", "its name leads nowhere"],
  ["address_refused", "its address is not a public one"],
  ["url_refused", "its URL is not allowed"],
  ["tls_failed", "its certificate is not valid"],
  ["answer_malformed", "no HTTP answer"],
  ["answer_too_long", "an answer without end"],
  ["switched_off", "switched off"],
  ["lost", "interrupted"],
]);

let isAdmin = false;
let path = "";
/** The address of the next page, '' after the last one. */
let next = "";

/** @param {boolean} mayResend */
export function bindDeliveries(mayResend) {
  isAdmin = mayResend;
  const section = byId("deliveries");
  onPress(byId("deliveries-refresh"), section, load);
  onPress(byId("deliveries-more"), section, async () => {
    const page = await get(next);
    byId("delivery-list").append(...page.results.map(rowOf));
    turn(page);
  });
}

/** @param {{id: string, url: string}} webhook */
export async function showDeliveries({ id, url }) {
  path = `/v1/webhooks/${id}/deliveries`;
  fill(byId("deliveries"), { url });
  await load();
  show(byId("deliveries"));
  byId("deliveries-title").focus();
}

export function hideDeliveries() {
  show(byId("deliveries"), false);
}

async function load() {
  const page = await get(path);
  const none = element("li", "Nothing was sent in the last 30 days.");
  none.className = "muted";
  const rows = page.results.map(rowOf);
  byId("delivery-list").replaceChildren(...(rows.length ? rows : [none]));
  turn(page);
}

/** @param {{next: string | null}} page */
function turn(page) {
  next = page.next ? path + new URL(page.next).search : "";
  show(byId("deliveries-more"), next !== "");
}

/** @param {Delivery} delivery */
function rowOf(delivery) {
  const row = stamp("delivery-row");
  fill(row, { event: delivery.event, about: aboutOf(delivery) });
  within(row, "[data-badges]").replaceChildren(...badges([delivery.state]));
  const isOver = ["delivered", "failed"].includes(delivery.state);
  show(within(row, ".actions"), isAdmin && isOver);
  const button = within(row, "button");
  button.setAttribute("aria-label", `Send again: ${delivery.event} of ${at(delivery.created_at)}`);
  onPress(button, byId("deliveries"), async () => {
    await call("POST", `${path}/${delivery.id}/resend`);
    announce("It is sent again.");
    await load();
  });
  return row;
}

/** @param {string} text ISO 8601 */
function at(text) {
  return moment(Date.parse(text) / 1000);
}

/** @param {Delivery} delivery */
function aboutOf({ created_at, attempts, last_status, last_error, next_attempt_at }) {
  const tried = `${attempts} attempt${attempts === 1 ? "" : "s"}`;
  const outcome = last_status ? `status ${last_status}` : ERRORS.get(last_error);
  const again = next_attempt_at && attempts ? `again at ${at(next_attempt_at)}` : "";
  return [at(created_at), tried, outcome, again].filter(Boolean).join(" · ");
}
