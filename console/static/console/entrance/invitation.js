// @ts-check
/** Accept an invitation: see what it offers, choose a password or a provider, come in. */

import { afterMove } from "./address_moved.js";
import { get, post, query } from "../lib/api.js";
import { byId, fill, show, turnTo } from "../lib/dom.js";
import { enrol } from "../factors/enrol.js";
import { onSubmit, showProblem } from "../lib/forms.js";
import { dated } from "../lib/format.js";
import { fillIn, onLink } from "../lib/link.js";
import { HOME } from "../lib/navigation.js";
import { Problem } from "../lib/problem.js";
import { offerProviders } from "./provider_choices.js";
import { bindReveals } from "../lib/reveal.js";
import { ready } from "../lib/status.js";
import { tellOthers } from "../lib/tabs.js";

const PATH = "/v1/invitations";
const tokenForm = /** @type {HTMLFormElement} */ (byId("token-form"));
let token = "";
let invitationId = "";

bindReveals();
onSubmit(tokenForm, (values) => look(values.token.trim()));
onSubmit(/** @type {HTMLFormElement} */ (byId("accept-form")), async ({ password }) => {
  try {
    await proceed(await post(`${PATH}/accept`, { token, password }));
  } catch (error) {
    // What is over is said where another token can be entered.
    if (!(error instanceof Problem) || error.status !== 410) throw error;
    turnTo(byId("token-part"));
    showProblem(tokenForm, error);
  }
});
onLink((brought) => {
  fillIn(byId("token"), brought.token);
  if (brought.token) void look(brought.token).catch((error) => showProblem(tokenForm, error)).finally(ready);
});
if (!(/** @type {HTMLInputElement} */ (byId("token")).value)) ready();

/** @param {string} given */
async function look(given) {
  const offer = await query(`${PATH}/preview`, { token: given });
  token = given;
  invitationId = offer.id;
  const host = offer.invited_by ? `${offer.invited_by} invites you` : "You are invited";
  fill(byId("offer"), {
    organization: offer.organization,
    offer: `${host} to join as ${offer.roles.join(" and ")}. The invitation is open until ${dated(offer.expires_at)}.`,
  });
  /** @type {HTMLInputElement} */ (byId("offered-email")).value = offer.email;
  const present = await presentEmail();
  fill(byId("offer-signed-in"), { present });
  show(byId("offer-signed-in"), present !== "");
  await offerProviders(byId("accept-form"), () => ({ invitationId, fragment: `#token=${token}` }));
  turnTo(byId("offer"));
}

/** Return the e-mail address of the signed-in user, '' without one. */
async function presentEmail() {
  try {
    return String((await get("/v1/whoami")).email);
  } catch (error) {
    // 403: a session that must set up a second factor or give an address first.
    if (error instanceof Problem && [401, 403].includes(error.status)) return "";
    throw error;
  }
}

/** @param {any} answer as a login's */
async function proceed(answer) {
  token = "";
  if (answer.status !== "mfa_enrollment_required") {
    await afterMove(answer, enterConsole);
    return;
  }
  turnTo(byId("enrolment"));
  await enrol(answer.allowed_methods, { done: enterConsole });
}

function enterConsole() {
  tellOthers();
  location.replace(HOME);
}
