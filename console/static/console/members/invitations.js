// @ts-check
/** Invitations that wait: sent, sent again, revoked. */

import { call, get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { dated } from "../lib/format.js";
import { badges, chooseRoles, chosenRoles } from "./roles.js";
import { announce } from "../lib/status.js";
import { wordsOf } from "../lib/stored.js";

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

let isAdmin = false;

/** @param {boolean} mayInvite */
export function bindInvitations(mayInvite) {
  isAdmin = mayInvite;
  const form = /** @type {HTMLFormElement} */ (byId("invite"));
  show(form, mayInvite);
  chooseRoles(form, ["reader"]);
  onSubmit(form, async ({ email, labels }) => {
    await send({ email, roles: chosenRoles(form), labels: wordsOf(labels) });
    form.reset();
    chooseRoles(form, ["reader"]);
  });
}

/** @param {{email: string, roles: string[], labels: string[]}} offer */
async function send(offer) {
  const { email } = await post(PATH, offer);
  await showInvitations();
  announce(`An invitation is on its way to ${email}.`);
}

/** Show those that can still be accepted, and those that were not in time. */
export async function showInvitations() {
  const states = ["pending", "expired"];
  const pages = await Promise.all(
    states.map((state) => get(`${PATH}?page_size=${SHOWN}&state=${state}`)),
  );
  const rows = pages.flatMap((page) => page.results);
  const none = element("li", "There are no open invitations.");
  none.className = "muted";
  byId("invitation-list").replaceChildren(...(rows.length ? rows.map(rowOf) : [none]));
  clearProblem(byId("waiting"));
}

/** @param {Invitation} invitation */
function rowOf(invitation) {
  const { email, roles, labels } = invitation;
  const row = stamp("invitation-row");
  fill(row, { email, about: aboutOf(invitation) });
  const marks = invitation.state === "expired" ? [...roles, "expired"] : roles;
  within(row, "[data-badges]").replaceChildren(...badges(marks));
  show(within(row, ".actions"), isAdmin);
  const section = byId("waiting");
  const again = within(row, "[data-action=again]");
  again.setAttribute("aria-label", `Send again: ${email}`);
  onPress(again, section, () => send({ email, roles, labels }));
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
