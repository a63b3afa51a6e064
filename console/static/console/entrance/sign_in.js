// @ts-check
/** Sign in: password, passkey or provider, then the second factor, or setting one up. */

import { afterMove } from "./address_moved.js";
import { get, post } from "../lib/api.js";
import { challenge } from "../factors/challenge.js";
import { byId, fill, show, stamp, turnTo, within } from "../lib/dom.js";
import { enrol, forgetSetUp } from "../factors/enrol.js";
import { hasPending, keepPending, LINKED_ACCOUNTS, takePending, takeReturn } from "./external.js";
import { attempt, clearProblem, onPress, onSubmit, showProblem } from "../lib/forms.js";
import { isAvailable, prove } from "../factors/passkeys.js";
import { keptStep } from "../lib/kept_step.js";
import { isAgain, restrictedTo, wanted } from "../lib/navigation.js";
import { Cancelled, Problem } from "../lib/problem.js";
import { offerProviders } from "./provider_choices.js";
import { bindReveals } from "../lib/reveal.js";
import { ready } from "../lib/status.js";
import { tellOthers } from "../lib/tabs.js";

/** Problems of a sign-in whose ten minutes are over. */
const OVER = new Set(["not_authenticated", "token_expired", "token_invalid", "session_revoked"]);

/**
 * The second step of a pending sign-in: the answer of the first one, and the open question.
 * @type {ReturnType<typeof keptStep<{answer: any, question: any}>>}
 */
const secondStep = keptStep("zonal-second-step");
/** The answer of the first step whose second one is on the page. @type {any} */
let signingIn = null;
const form = /** @type {HTMLFormElement} */ (byId("sign-in"));
/** @type {AbortController | null} */
let autofill = null;

bindReveals();
onSubmit(form, async ({ email, password }) => {
  autofill?.abort();
  await proceed(await post("/v1/auth/login", { email, password }));
});
show(byId("passkey-part"), isAvailable());
onPress(byId("passkey"), form, async () => {
  autofill?.abort();
  const start = await post("/v1/auth/passkey/start");
  await finishPasskey(start, await prove(start.request_options));
});
const back = takeReturn();
/** Why it is unknown whether the visitor is signed in. @type {unknown} */
let unknown = null;
if (!back && !isAgain() && (await isSignedIn())) {
  secondStep.forget();
  location.replace(wanted());
} else {
  if (!back) takePending();
  await offerProviders(form);
  ready();
  if (unknown) showProblem(form, unknown);
  const step = back ? null : secondStep.present();
  for (const button of document.querySelectorAll("[data-start-again]")) button.addEventListener("click", startAgain);
  if (back) await attempt(form, () => finishExternal(back));
  if (step) await goOn(step);
  else {
    forgetSetUp();
    byId("email").focus();
    await offerPasskeys();
  }
}

/** @param {{answer: any, question: any}} step */
async function goOn({ answer, question }) {
  if (answer.status === "mfa_required") await askForSecondFactor(answer, question);
  else await askToEnrol(answer);
}

function startAgain() {
  signingIn = null;
  secondStep.forget();
  forgetSetUp();
  turnTo(byId("first-factor"));
  byId("email").focus();
}

/**
 * Continue after the return from a provider; a user with an account signs in to it first.
 * @param {import("./external.js").Return} back
 */
async function finishExternal({ title, exchange, join }) {
  try {
    await proceed(await exchange());
  } catch (error) {
    if (error instanceof Problem && error.code === "invitation_open") {
      askToJoin(error.content.invitations, (id) => join(error.content.join_code, id).then(proceed));
      return;
    }
    if (!(error instanceof Problem) || error.code !== "link_required") throw error;
    const { provider, link_token } = error.content;
    keepPending({ provider, title, link_token });
    const link = `You have an account with this e-mail address. Sign in to it, and ${title} is linked.`;
    fill(byId("link-note"), { link });
    show(byId("link-note"));
  }
}

/**
 * Ask whether to join an organization that has invited the address, or to have one of one's own.
 * @param {{id: string, organization: string, roles: string[], invited_by: string | null}[]} invitations
 * @param {(invitationId: string | null) => Promise<void>} join
 */
function askToJoin(invitations, join) {
  const part = byId("invited");
  byId("invited-list").replaceChildren(
    ...invitations.map(({ id, organization, roles, invited_by: by }) => {
      const row = stamp("invited-row");
      const about = `As ${roles.join(" and ")}${by ? `, invited by ${by}` : ""}.`;
      fill(row, { join: `Join ${organization}`, about });
      onPress(within(row, "button"), part, () => join(id));
      return row;
    }),
  );
  onPress(byId("invited-none"), part, () => join(null));
  turnTo(part);
}

async function isSignedIn() {
  try {
    await get("/v1/whoami");
    return true;
  } catch (error) {
    if (!(error instanceof Problem && error.status === 401)) unknown = error;
    return restrictedTo(error) !== undefined;
  }
}

/** Offer passkeys where the browser fills in the address, if it can. */
async function offerPasskeys() {
  if (!isAvailable() || !(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
  autofill = new AbortController();
  try {
    const start = await post("/v1/auth/passkey/start");
    const how = /** @type {const} */ ({ mediation: "conditional", signal: autofill.signal });
    await finishPasskey(start, await prove(start.request_options, how));
  } catch (error) {
    // The user did not start it, so a failure is silent; a refused passkey is reported.
    if (error instanceof Problem && error.code === "passkey_rejected") showProblem(form, error);
  }
}

/**
 * @param {{challenge_id: string}} start
 * @param {object} credential
 */
async function finishPasskey(start, credential) {
  const body = { challenge_id: start.challenge_id, credential };
  await proceed(await post("/v1/auth/passkey/finish", body));
}

/** @param {any} answer of any way in */
async function proceed(answer) {
  form.reset();
  if (answer.status === "mfa_required") await askForSecondFactor(answer);
  else if (answer.status === "mfa_enrollment_required") await askToEnrol(answer);
  else await afterMove(answer, enterConsole);
}

/**
 * @param {any} answer
 * @param {any} [open] the question that was asked before a reload: another one would send another code
 */
async function askForSecondFactor(answer, open = null) {
  signingIn = answer;
  secondStep.keep({ answer, question: open }, answer.mfa_expires_at);
  turnTo(byId("second-factor"));
  await challenge(
    {
      ask: async (method) => {
        const question = open ?? (await orStartAgain(get(`/v1/auth/2fa/challenge${method ? `?method=${method}` : ""}`)));
        open = null;
        // The user began again while the question was on its way.
        if (signingIn !== answer) throw new Cancelled();
        secondStep.keep({ answer, question }, answer.mfa_expires_at);
        return question;
      },
      reply: async (question, given) => {
        await orStartAgain(post(`/v1/auth/2fa/challenge/${question.challenge_id}/verify`, given)).then(proceed);
      },
      gone: () => secondStep.keep({ answer, question: null }, answer.mfa_expires_at),
      methods: answer.methods.map((/** @type {{method: string}} */ each) => each.method),
      canTrust: answer.trusted_device_allowed,
    },
    answer.methods.find((/** @type {{default: boolean}} */ each) => each.default)?.method,
  );
}

/** @param {any} answer */
async function askToEnrol(answer) {
  secondStep.keep({ answer, question: null }, answer.mfa_expires_at);
  turnTo(byId("enrolment"));
  await enrol(answer.allowed_methods, { orGiveUp: orStartAgain, done: enterConsole });
}

/**
 * Return the result of a call of the pending sign-in, or begin again if it has expired.
 * @template T
 * @param {Promise<T>} pending
 * @returns {Promise<T>}
 */
async function orStartAgain(pending) {
  try {
    return await pending;
  } catch (error) {
    if (!(error instanceof Problem) || !OVER.has(error.code)) throw error;
    secondStep.forget();
    forgetSetUp();
    turnTo(byId("first-factor"));
    clearProblem(form);
    showProblem(form, new Problem(0, { title: "That took too long. Sign in again." }));
    throw new Cancelled();
  }
}

function enterConsole() {
  secondStep.forget();
  tellOthers();
  location.replace(hasPending() ? LINKED_ACCOUNTS : wanted());
}
