// @ts-check
/** Sign up with a password, or with the link that was mailed to the address. */

import { isMoved } from "./address_moved.js";
import { get, post } from "../lib/api.js";
import { byId, fill, show, turnTo } from "../lib/dom.js";
import { enrol } from "../factors/enrol.js";
import { onPress, onSubmit, showProblem } from "../lib/forms.js";
import { moment } from "../lib/format.js";
import { onLink } from "../lib/link.js";
import { Problem } from "../lib/problem.js";
import { offerProviders } from "./provider_choices.js";
import { bindReveals } from "../lib/reveal.js";
import { ready } from "../lib/status.js";
import { tellOthers } from "../lib/tabs.js";

const PATH = "/v1/auth/signup";
const form = /** @type {HTMLFormElement} */ (byId("sign-up"));
const linkForm = /** @type {HTMLFormElement} */ (byId("link-form"));
/** The token of the mailed link, kept in memory alone. */
let token = "";

bindReveals();
onSubmit(form, async ({ email, password, organization }) => {
  try {
    await post(PATH, { email, password, organization: organization.trim() || undefined });
  } catch (error) {
    // The owner of the mailbox gets the address, even if someone has used it without verifying it.
    show(byId("link-offer"), error instanceof Problem && error.code === "email_taken");
    throw error;
  }
  await finish();
});
onPress(byId("link-request"), form, requestLink);
onSubmit(linkForm, async ({ password, organization }) => {
  try {
    await proceed(await post(`${PATH}/complete`, { token, password, organization: organization.trim() }));
  } catch (error) {
    // A link that is used up is reported where another one can be requested.
    if (!(error instanceof Problem) || error.status !== 410) throw error;
    turnTo(byId("ask"));
    show(byId("link-offer"));
    showProblem(form, error);
  }
});
onLink(({ signup }) => {
  if (!signup) return;
  token = signup;
  turnTo(byId("by-link"));
});
await offerProviders(form);
ready();

async function requestLink() {
  const email = /** @type {HTMLInputElement} */ (byId("email")).value.trim();
  const { expires_at } = await post(`${PATH}/link`, { email });
  fill(byId("link-mailed"), { email, until: moment(expires_at) });
  turnTo(byId("link-mailed"));
}

/** @param {any} answer as a login's */
async function proceed(answer) {
  token = "";
  linkForm.reset();
  if (answer.status !== "mfa_enrollment_required") return finish(isMoved(answer));
  turnTo(byId("enrolment"));
  await enrol(answer.allowed_methods, { done: () => void finish() });
}

/** @param {boolean} hasMoved whether another account lost the address to this one */
async function finish(hasMoved = false) {
  tellOthers();
  const { email, organization } = await get("/v1/whoami");
  fill(byId("done"), { email, organization });
  show(byId("moved"), hasMoved);
  turnTo(byId("done"));
}
