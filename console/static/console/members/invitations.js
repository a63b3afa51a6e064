// @ts-check
/** Invitations that wait: sent again, revoked. */

import { call, get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { clearProblem, onPress } from "../lib/forms.js";
import { dated } from "../lib/format.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { bindInviting } from "./inviting.js";
import { badges } from "./roles.js";

/**
 * @typedef {object} Invitation
 * @property {string} id
 * @property {string} email
 * @property {string[]} roles
 * @property {string[]} labels
 * @property {"pending" | "expired"} state
 * @property {string | null} invited_by
 * @property {string} expires_at
 */

const PATH = "/v1/invitations";
/** As many as anybody looks through. */
const SHOWN = 200;
const OPEN = ["pending", "expired"];

let isAdmin = false;

/** @param {boolean} mayInvite */
export function bindInvitations(mayInvite) {
  isAdmin = mayInvite;
  if (mayInvite) bindInviting(showInvitations);
}

/**
 * Send an invitation again, with the roles that it has now: they may have been changed meanwhile.
 * @param {Invitation} invitation as the list shows it
 */
async function sendAgain({ id, email }) {
  const { results } = await get(`${PATH}?${new URLSearchParams({ email, page_size: String(SHOWN) })}`);
  const found = results.find((/** @type {Invitation} */ each) => each.id === id);
  if (!found || !OPEN.includes(found.state)) {
    await showInvitations();
    throw new Problem(409, { title: `The invitation of ${email} was replaced, accepted or revoked meanwhile. The list shows it.` });
  }
  await post(PATH, { email, roles: found.roles, labels: found.labels });
  await showInvitations();
  announce(`An invitation is on its way to ${email}.`);
}

/** Show those that can still be accepted, and those that were not in time. */
export async function showInvitations() {
  const pages = await Promise.all(
    OPEN.map((state) => get(`${PATH}?page_size=${SHOWN}&state=${state}`)),
  );
  const rows = pages.flatMap((page) => page.results);
  const none = element("li", "There are no open invitations.");
  none.className = "muted";
  byId("invitation-list").replaceChildren(...(rows.length ? rows.map(rowOf) : [none]));
  clearProblem(byId("waiting"));
}

/** @param {Invitation} invitation */
function rowOf(invitation) {
  const { email, roles } = invitation;
  const row = stamp("invitation-row");
  fill(row, { email, about: aboutOf(invitation) });
  const marks = invitation.state === "expired" ? [...roles, "expired"] : roles;
  within(row, "[data-badges]").replaceChildren(...badges(marks));
  show(within(row, ".actions"), isAdmin);
  const section = byId("waiting");
  const again = within(row, "[data-action=again]");
  again.setAttribute("aria-label", `Send again: ${email}`);
  onPress(again, section, () => sendAgain(invitation));
  const revoke = within(row, "[data-action=revoke]");
  revoke.setAttribute("aria-label", `Revoke: ${email}`);
  onPress(revoke, section, async () => {
    await confirm(`Revoke the invitation of ${email}?`, "Its link stops working.", "Revoke");
    await call("DELETE", `${PATH}/${invitation.id}`);
    await showInvitations();
    announce(`The invitation of ${email} is revoked.`);
  });
  return row;
}

/** @param {Invitation} invitation */
function aboutOf({ state, expires_at, invited_by, labels }) {
  const said = [`${state === "expired" ? "Expired" : "Open until"} ${dated(expires_at)}`];
  if (invited_by) said.push(`by ${invited_by}`);
  if (labels.length) said.push(labels.join(", "));
  return said.join(" · ");
}
