// @ts-check
/**
 * Getting back in: a code that is sent, then a second factor or the password, never a session.
 * The reset token is in a cookie; what has to outlive a reload here is no secret.
 */

import { post } from "../lib/api.js";
import { challenge } from "../factors/challenge.js";
import { byId, fill, show, stamp, turnTo, within } from "../lib/dom.js";
import { enrol } from "../factors/enrol.js";
import { attempt, onPress, onSubmit, showProblem } from "../lib/forms.js";
import { moment } from "../lib/format.js";
import { fillIn, onLink } from "../lib/link.js";
import { isAvailable, prove } from "../factors/passkeys.js";
import { keptStep } from "../lib/kept_step.js";
import { HOME } from "../lib/navigation.js";
import { Problem } from "../lib/problem.js";
import { bindReveals } from "../lib/reveal.js";
import { ready } from "../lib/status.js";

const PATH = "/v1/auth/recovery";
const DELAY = "zonal-recovery-delay";
/**
 * What a reload goes on from: questions, a code on its way, the answer to the right one with the question about a
 * second factor, or the choice of a new factor. A new password is typed again: it is kept nowhere.
 * @typedef {object} Step
 * @property {string} id
 * @property {any} [questions]
 * @property {string} [sent]
 * @property {any} [verified]
 * @property {any} [question]
 * @property {any} [enrolment]
 */
/** @type {ReturnType<typeof keptStep<Step>>} */
const step = keptStep("zonal-recovery-step");

let recoveryId = "";
/** The new password, kept until the second factor is proven with it. */
let chosen = "";
/**
 * The question about the second factor: another one would send another code.
 * @type {any}
 */
let openQuestion = null;
/**
 * The answer to the right code.
 * @type {any}
 */
let verified = null;
/** @type {string[]} */
let methods = [];
/** Whether the address can have a new account, because the other one never verified it. */
let newAccountOffered = false;
/** Whether completing opens a new account, since the address of the other one was never verified. */
let isNewAccount = false;

bindReveals();
onSubmit(formOf("start-form"), start);
onSubmit(formOf("answers-form"), answer);
onSubmit(formOf("token-form"), verify);
onSubmit(formOf("new-password-form"), choosePassword);
onSubmit(formOf("first-proof-form"), ({ password }) => beginDelay({ password }));
onPress(byId("first-proof-passkey"), formOf("first-proof-form"), provePasskey);
onPress(byId("new-account"), byId("new-account-part"), () => complete({ new_account: true }));
onPress(byId("due-complete"), byId("due-part"), completeLostFactor);
byId("start-over").addEventListener("click", () => {
  localStorage.removeItem(DELAY);
  step.forget();
  turnTo(byId("start"));
});
const delay = localStorage.getItem(DELAY);
if (delay) showDelay(JSON.parse(delay));
else goOn(step.present());
onLink(comeByMail);
ready();

/**
 * Go on where the mail's link leads: to its code, and to nothing before that was sent.
 * @param {Record<string, string>} brought
 */
function comeByMail({ recovery, token }) {
  if (!recovery || !token) return;
  recoveryId = recovery;
  fill(byId("token-part"), { sent: "The code of the mail is filled in." });
  fillIn(byId("token"), token);
  turnTo(byId("token-part"));
}

/** @param {Step | null} kept */
function goOn(kept) {
  if (!kept) return;
  recoveryId = kept.id;
  openQuestion = kept.question ?? null;
  if (kept.enrolment) void attempt(byId("enrolment"), () => askToEnrol(kept.enrolment));
  else if (kept.verified) goOnVerified(kept.verified);
  else if (kept.questions) ask(kept.questions);
  else {
    fill(byId("token-part"), { sent: kept.sent ?? "" });
    turnTo(byId("token-part"));
  }
}

/** @param {string} id */
function formOf(id) {
  return /** @type {HTMLFormElement} */ (byId(id));
}

/** @param {import("../lib/forms.js").Values} values */
async function start({ purpose, email, method }) {
  const body = { purpose, email: email.trim(), method };
  const answer = await post(`${PATH}/initiate`, body);
  recoveryId = answer.recovery_id;
  if (answer.questions) {
    step.keep({ id: recoveryId, questions: answer.questions }, answer.expires_at);
    ask(answer.questions);
  } else waitForToken(method === "sms" ? "a text message" : "a mail", answer.expires_at);
}

/** @param {{question_id: string, question: string}[]} questions */
function ask(questions) {
  byId("answers-list").replaceChildren(
    ...questions.map(({ question_id, question }) => {
      const row = stamp("answer-row");
      const input = within(row, "input");
      const error = within(row, ".error");
      input.id = `answer-${question_id}`;
      input.setAttribute("name", question_id);
      error.id = `${input.id}-error`;
      input.setAttribute("aria-describedby", error.id);
      within(row, "label").setAttribute("for", input.id);
      within(row, "label").textContent = question;
      return row;
    }),
  );
  turnTo(byId("answers"));
}

/** @param {import("../lib/forms.js").Values} answers */
async function answer(answers) {
  const { expires_at } = await post(`${PATH}/answers`, { recovery_id: recoveryId, answers });
  waitForToken("a mail, if the answers are right,", expires_at);
}

/**
 * @param {string} how
 * @param {number} until
 */
function waitForToken(how, until) {
  const text = `If there is such an account, ${how} is on its way. The code is good until ${moment(until)}.`;
  step.keep({ id: recoveryId, sent: text }, until);
  fill(byId("token-part"), { sent: text });
  turnTo(byId("token-part"));
}

/** @param {import("../lib/forms.js").Values} values */
async function verify({ token }) {
  const answer = await post(`${PATH}/verify`, { recovery_id: recoveryId, token });
  step.keep({ id: recoveryId, verified: answer }, answer.expires_at);
  openQuestion = null;
  goOnVerified(answer);
}

/** @param {any} answer to the right code */
function goOnVerified(answer) {
  verified = answer;
  methods = answer.methods;
  newAccountOffered = answer.new_account_offered;
  if (answer.next === "first_factor") {
    show(byId("first-proof-passkey"), isAvailable() && methods.includes("webauthn"));
    turnTo(byId("first-proof"));
    return;
  }
  isNewAccount = newAccountOffered && answer.next === "password";
  show(byId("ends-sessions"), !isNewAccount);
  show(byId("opens-account"), isNewAccount);
  turnTo(byId("new-password"));
}

/** @param {import("../lib/forms.js").Values} values */
async function choosePassword({ password }) {
  chosen = password;
  try {
    await complete({});
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "recovery_challenge_required") throw error;
    await proveSecondFactor();
  }
}

async function proveSecondFactor() {
  turnTo(byId("proof"));
  show(byId("new-account-part"), newAccountOffered);
  await challenge({
    ask: async (method) => {
      const question = openQuestion ?? (await post(`${PATH}/challenge`, { method }));
      openQuestion = null;
      step.keep({ id: recoveryId, verified, question }, verified.expires_at);
      return question;
    },
    reply: (question, given) => complete({ challenge_id: question.challenge_id, ...given }),
    gone: () => step.keep({ id: recoveryId, verified }, verified.expires_at),
    methods,
  });
}

/** @param {object} proof */
async function complete(proof) {
  try {
    await post(`${PATH}/complete`, { password: chosen, ...proof });
  } catch (error) {
    // A password that is refused only now: choose again, then prove again.
    if (!(error instanceof Problem) || !error.fields.some(({ field }) => field === "password")) throw error;
    turnTo(byId("new-password"));
    showProblem(byId("new-password-form"), error);
    return;
  }
  chosen = "";
  step.forget();
  formOf("new-password-form").reset();
  turnTo(byId(isNewAccount || "new_account" in proof ? "done-new" : "done"));
}

async function provePasskey() {
  const question = await post(`${PATH}/challenge`, { method: "webauthn" });
  const credential = await prove(question.request_options);
  await beginDelay({ challenge_id: question.challenge_id, credential });
}

/** @param {object} proof */
async function beginDelay(proof) {
  const answer = await post(`${PATH}/prove`, proof);
  step.forget();
  formOf("first-proof-form").reset();
  const times = { from: answer.effective_at, until: answer.expires_at };
  localStorage.setItem(DELAY, JSON.stringify(times));
  showDelay(times);
}

/** @param {{from: number, until: number}} times */
function showDelay({ from, until }) {
  fill(byId("delayed"), { from: moment(from), until: moment(until) });
  show(byId("due-part"), from * 1000 <= Date.now());
  turnTo(byId("delayed"));
}

async function completeLostFactor() {
  const answer = await post(`${PATH}/complete`);
  localStorage.removeItem(DELAY);
  step.keep({ id: "", enrolment: answer.allowed_methods }, answer.mfa_expires_at);
  await askToEnrol(answer.allowed_methods);
}

/** @param {string[]} methods */
async function askToEnrol(methods) {
  turnTo(byId("enrolment"));
  await enrol(methods, {
    done: () => {
      step.forget();
      location.replace(HOME);
    },
  });
}
