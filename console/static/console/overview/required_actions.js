// @ts-check
/** What needs doing, each with the page to do it on. */

import { byId, element, show } from "../lib/dom.js";
import { UCR_A_CENT, credits, moment, share } from "../lib/format.js";

/** A warning comes before the disk is full. */
const NEARLY_FULL = 0.8;
/** Less than this is soon gone: a thousand credits are a cent. */
const LOW_UCR = 50_000 * 1e6;

/**
 * @param {import("../frame/shell.js").Who} who
 * @param {Record<string, any>} facts
 */
export function showRequiredActions(who, facts) {
  const actions = [...ofOrganization(facts), ...ofAccount(who, facts), ...ofDisk(facts), ...ofBalance(facts), ...ofCache(facts)];
  byId("required-action-list").replaceChildren(...actions.map(rowOf));
  show(byId("required-actions"), actions.length > 0);
  // The frame's reminder is in the list.
  show(byId("unverified"), false);
}

/** @typedef {{text: string, action: string, path: string, isUrgent?: boolean}} Duty */

/**
 * @param {import("../frame/shell.js").Who} who
 * @param {Record<string, any>} facts
 * @returns {Duty[]}
 */
function ofAccount(who, { compliance }) {
  const actions = [];
  if (who.email_verified === false) {
    actions.push({ text: "Verify your e-mail address: without it there is no way back into your account.", action: "Verify", path: "account" });
  }
  if (compliance && !compliance.compliant) {
    const from = compliance.grace_ends_at ? ` from ${moment(compliance.grace_ends_at)} on` : "";
    actions.push({ text: `Your organization requires a second factor${from}.`, action: "Set one up", path: "security", isUrgent: true });
  } else if (compliance && compliance.enabled_methods.length === 0) {
    actions.push({ text: "A password alone can be stolen. Add a second factor.", action: "Set one up", path: "security" });
  }
  return actions;
}

/**
 * @param {Record<string, any>} facts
 * @returns {Duty[]}
 */
function ofOrganization({ organization }) {
  const due = organization?.deletion_due_at;
  if (!due) return [];
  return [{ text: `This organization will be deleted permanently on ${moment(Date.parse(due) / 1000)}.`, action: "Look", path: "organization", isUrgent: true }];
}

/**
 * @param {Record<string, any>} facts
 * @returns {Duty[]}
 */
function ofDisk({ disk }) {
  if (!disk) return [];
  const { used_bytes: used, limit_bytes: limit, exceeded } = disk.disk;
  if (exceeded) return [{ text: "The database is over its quota: only reading and deleting work.", action: "Delete data", path: "sql", isUrgent: true }];
  if ((used ?? 0) < NEARLY_FULL * limit) return [];
  return [{ text: `The database uses ${share(used / limit)} of its quota.`, action: "Look", path: "sql" }];
}

/**
 * @param {Record<string, any>} facts
 * @returns {Duty[]}
 */
function ofBalance({ balance }) {
  if (!balance) return [];
  const left = balance.granted_ucr + balance.paid_ucr;
  if (balance.service === "stopped") return [{ text: "Out of credits: nodes of other operators do not serve your objects.", action: "See credits", path: "usage", isUrgent: true }];
  // What is less than a cent is not worth an alarm.
  if (-balance.debt_ucr >= UCR_A_CENT) return [{ text: `You owe ${credits(-balance.debt_ucr)} credits.`, action: "See credits", path: "usage", isUrgent: true }];
  if (left === 0 || left > LOW_UCR) return [];
  return [{ text: `Only ${credits(left)} credits are left.`, action: "See credits", path: "usage" }];
}

/**
 * @param {Record<string, any>} facts
 * @returns {Duty[]}
 */
function ofCache({ status }) {
  if (!status || status.online_nodes || !status.total_nodes) return [];
  return [{ text: "No node of the edge cache is online: objects come from their origin.", action: "Look", path: "cache", isUrgent: true }];
}

/** @param {Duty} duty */
function rowOf({ text, action, path, isUrgent }) {
  const row = element("li");
  const what = element("p", text);
  what.className = isUrgent ? "what urgent" : "what";
  const link = /** @type {HTMLAnchorElement} */ (element("a", action));
  link.href = `/console/${path}`;
  link.className = "button";
  row.append(what, link);
  return row;
}
