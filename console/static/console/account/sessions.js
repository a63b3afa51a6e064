// @ts-check
/** One's own sessions: where one is signed in. */

import { call, list } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { onPress } from "../lib/forms.js";
import { count, moment, programOf } from "../lib/format.js";
import { announce } from "../lib/status.js";

/**
 * @typedef {object} Session
 * @property {string} id
 * @property {boolean} current
 * @property {{id: string, name: string}} environment
 * @property {string} address
 * @property {string} agent
 * @property {number} aal
 * @property {number} created_at
 * @property {number} last_used_at
 */

const PATH = "/v1/auth/sessions";

export function bindSessions() {
  onPress(byId("sessions-end"), byId("sessions"), async () => {
    await confirm("Sign out everywhere else?", "All of your other sessions end immediately.", "Sign out");
    const { ended } = await call("DELETE", PATH);
    await showSessions();
    announce(`${count(ended, "session")} ended.`);
  });
}

export async function showSessions() {
  const rows = await list(PATH);
  // The one in use leads; the others stay in their order.
  rows.sort((left, right) => Number(right.current) - Number(left.current));
  byId("session-list").replaceChildren(...rows.map(rowOf));
  show(byId("sessions-end"), rows.some((row) => !row.current));
}

/** @param {Session} session */
function rowOf(session) {
  const row = stamp("session-row");
  const agent = programOf(session.agent);
  fill(row, { agent, about: aboutOf(session) });
  show(within(row, "[data-current]"), session.current);
  const button = within(row, "[data-action=end]");
  button.setAttribute("aria-label", `End: ${agent}, ${session.address}`);
  show(button, !session.current);
  onPress(button, byId("sessions"), async () => {
    await call("DELETE", `${PATH}/${session.id}`);
    await showSessions();
    announce("The session is ended.");
  });
  return row;
}

/** @param {Session} session */
function aboutOf(session) {
  return [
    session.address,
    session.environment.name,
    session.aal > 1 ? "with a second factor" : "one factor",
    `signed in ${moment(session.created_at)}`,
    `last used ${moment(session.last_used_at)}`,
  ].join(" · ");
}
