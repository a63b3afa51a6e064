// @ts-check
/** Setting up a method: each one is begun, proven once, and then active. */

import { post } from "../lib/api.js";
import { showCodes } from "./codes.js";
import { copy } from "../lib/clipboard.js";
import { byId, element, fill, show, turnTo, within } from "../lib/dom.js";
import { factorLabel, loadFactorLabels } from "./factors.js";
import { clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { deviceName } from "../lib/format.js";
import { keptStep } from "../lib/kept_step.js";
import { create, isAvailable } from "./passkeys.js";
import { Problem } from "../lib/problem.js";

const PATH = "/v1/auth/2fa";
/** How long a set-up of an app can be proved. */
const APP_LIFE_S = 600;
/**
 * The set-up whose code a reload goes on to ask for: beginning again would send another code, or make another
 * key. The key itself is not kept.
 * @type {ReturnType<typeof keptStep<{method: string, id: string, hint: string}>>}
 */
const step = keptStep("zonal-set-up");

/**
 * @typedef {object} Setting what the page around does
 * @property {() => void} done the method is active, and its codes are kept
 * @property {() => void} [back] the reader does not want to go on
 * @property {<T>(call: Promise<T>) => Promise<T>} [orGiveUp] where a pending sign-in may be over
 */

/** @type {Setting} */
let setting = { done: () => {} };
/** What the proof refers to: of an app, or of a code that was sent. */
let secretId = "";
let sent = { method: "", verificationId: "" };
let isBound = false;

/**
 * Each begins a method's set-up, by the method's name.
 * @type {Record<string, () => Promise<void>>}
 */
const BEGIN = { totp: beginTotp, webauthn: beginPasskey, sms: beginSms, email: beginEmail };

/** Return the method whose set-up a reload has interrupted, '' without one. */
export function interruptedMethod() {
  return step.present()?.method ?? "";
}

/** Forget the set-up that a reload would go on with: another user may sign in here. */
export function forgetSetUp() {
  step.forget();
}

/**
 * Let the reader choose between methods, where one is required to sign in.
 * @param {string[]} methods
 * @param {Setting} given
 */
export async function enrol(methods, given) {
  await loadFactorLabels();
  const choices = byId("enrolment");
  const back = () => turnTo(choices);
  const offered = methods.filter((method) => method !== "webauthn" || isAvailable());
  byId("enrolment-choices").replaceChildren(
    ...offered.map((method) => {
      const button = element("button", factorLabel(method));
      button.setAttribute("type", "button");
      onPress(button, choices, () => setUp(method, { ...given, back }));
      const item = element("li");
      item.append(button);
      return item;
    }),
  );
  const interrupted = interruptedMethod();
  if (offered.includes(interrupted)) await setUp(interrupted, { ...given, back });
}

/**
 * Begin to set up a method, or go on where a reload has interrupted it.
 * @param {string} method
 * @param {Setting} given
 */
export async function setUp(method, given) {
  bind();
  setting = given;
  const kept = step.present();
  if (kept?.method !== method) await BEGIN[method]();
  else if (method === "totp") askForAppCode(kept.id, null);
  else askForSentCode(kept);
}

/**
 * @template T
 * @param {Promise<T>} call
 * @returns {Promise<T>}
 */
function held(call) {
  return setting.orGiveUp ? setting.orGiveUp(call) : call;
}

/**
 * @param {string} id
 * @param {string} [heading]
 */
function open(id, heading) {
  const panel = byId(id);
  const form = /** @type {HTMLFormElement} */ (within(panel, "form"));
  form.reset();
  clearProblem(form);
  if (heading) within(panel, "h2").textContent = heading;
  turnTo(panel);
}

function bind() {
  if (isBound) return;
  isBound = true;
  onSubmit(formOf("totp-form"), finishTotp);
  onSubmit(formOf("passkey-form"), finishPasskey);
  onSubmit(formOf("sms-form"), ({ phone_number }) => send("sms", { phone_number }));
  onSubmit(formOf("sent-code-form"), finishSent);
  byId("totp-copy").addEventListener("click", () => {
    void copy((byId("totp-key").textContent ?? "").replaceAll(" ", ""), "The key is");
  });
  for (const button of document.querySelectorAll("[data-back]")) {
    button.addEventListener("click", () => {
      step.forget();
      setting.back?.();
    });
  }
}

/** @param {string} id */
function formOf(id) {
  return /** @type {HTMLFormElement} */ (byId(id));
}

async function beginTotp() {
  const answer = await held(post(`${PATH}/totp/setup`));
  step.keep({ method: "totp", id: answer.secret_id, hint: "" }, Date.now() / 1000 + APP_LIFE_S);
  askForAppCode(answer.secret_id, answer);
}

/**
 * @param {string} id
 * @param {{secret: string, qr_code_png: string} | null} key null after a reload
 */
function askForAppCode(id, key) {
  secretId = id;
  for (const part of document.querySelectorAll("[data-key]")) show(/** @type {HTMLElement} */ (part), key !== null);
  show(byId("totp-gone"), key === null);
  if (key) {
    const picture = /** @type {HTMLImageElement} */ (byId("totp-qr"));
    picture.src = `data:image/png;base64,${key.qr_code_png}`;
    byId("totp-key").textContent = key.secret.match(/.{1,4}/g)?.join(" ") ?? "";
  }
  open("enrol-totp");
}

/** @param {import("../lib/forms.js").Values} values */
async function finishTotp({ code }) {
  const body = { secret_id: secretId, code: code.trim() };
  const answer = await finish("totp", body);
  /** @type {HTMLImageElement} */ (byId("totp-qr")).removeAttribute("src");
  byId("totp-key").textContent = "";
  if (answer.backup_codes.length) await showCodes(answer.backup_codes);
  setting.done();
}

async function beginPasskey() {
  open("enrol-passkey");
  /** @type {HTMLInputElement} */ (byId("passkey-name")).value = deviceName();
}

/** @param {import("../lib/forms.js").Values} values */
async function finishPasskey({ credential_name }) {
  const body = { rp_origin: location.origin };
  const start = await held(post(`${PATH}/webauthn/register`, body));
  const credential = await create(start.creation_options);
  const finish = { session_id: start.session_data.session_id, credential, credential_name };
  await held(post(`${PATH}/webauthn/register/finish`, finish));
  setting.done();
}

async function beginSms() {
  open("enrol-sms");
}

async function beginEmail() {
  await send("email", {});
}

/**
 * @param {string} method
 * @param {object} body
 */
async function send(method, body) {
  const answer = await held(post(`${PATH}/${method}/setup`, body));
  const kept = { method, id: answer.verification_id, hint: answer.phone_hint ?? answer.email_hint };
  step.keep(kept, answer.expires_at);
  askForSentCode(kept);
}

/** @param {{method: string, id: string, hint: string}} kept */
function askForSentCode({ method, id, hint }) {
  sent = { method, verificationId: id };
  fill(byId("enrol-code"), { hint });
  open("enrol-code");
}

/** @param {import("../lib/forms.js").Values} values */
async function finishSent({ code }) {
  const body = { verification_id: sent.verificationId, code: code.trim() };
  await finish(sent.method, body);
  setting.done();
}

/**
 * @param {string} method
 * @param {object} body
 */
async function finish(method, body) {
  try {
    const answer = await held(post(`${PATH}/${method}/verify`, body));
    step.forget();
    return answer;
  } catch (error) {
    if (error instanceof Problem && error.code === "enrolment_gone") step.forget();
    throw error;
  }
}
