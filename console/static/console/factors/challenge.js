// @ts-check
/** One question for a second factor: choose the method, type the code or use the passkey. */

import { byId, element, fill, show, within } from "../lib/dom.js";
import { factorLabel, loadFactorLabels } from "./factors.js";
import { attempt, clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { deviceName } from "../lib/format.js";
import { prove } from "./passkeys.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";

/**
 * @typedef {object} Question what the API gives for a method
 * @property {string} challenge_id
 * @property {string} method
 * @property {string[]} methods
 * @property {string | null} delivery_hint
 * @property {any} [request_options]
 */
/** @typedef {{code?: string, credential?: object, trust_device?: boolean, device_name?: string}} Reply */
/**
 * @typedef {object} Dialogue
 * @property {(method: string) => Promise<Question>} ask '' for the default method
 * @property {(question: Question, reply: Reply) => Promise<void>} reply
 * @property {() => void} [gone] the question cannot be answered any more
 * @property {string[]} [methods] to choose from where the first question cannot be asked
 * @property {boolean} [canTrust] offer to trust this device
 */

/** @type {Record<string, string>} */
const EXPLAINED = {
  totp: "Enter the code that your authenticator app shows.",
  backup_code: "Enter one of the backup codes you have kept. Each works once.",
  webauthn: "Use a passkey of this account: your browser will ask for it.",
};
const SENT = new Set(["sms", "email"]);

/** @type {Dialogue | null} */
let dialogue = null;
/** @type {Question | null} */
let question = null;
let isBound = false;

/**
 * Ask until the answer is right; the dialogue's `reply` continues from there.
 * @param {Dialogue} given
 * @param {string} [method] to begin with
 */
export async function challenge(given, method = "") {
  dialogue = given;
  bind();
  show(byId("challenge-trust"), given.canTrust === true);
  await attempt(form(), () => turnToMethod(method));
}

/** Forget the question. */
export function forget() {
  dialogue = question = null;
  show(byId("challenge"), false);
  form().reset();
  clearProblem(form());
}

function form() {
  return /** @type {HTMLFormElement} */ (byId("challenge-form"));
}

function bind() {
  if (isBound) return;
  isBound = true;
  onSubmit(form(), async (values) => {
    if (!dialogue || !question) return;
    const options = question.request_options;
    /** @type {Reply} */
    const reply = options ? { credential: await prove(options) } : { code: values.code.trim() };
    if (dialogue.canTrust && values.trust_device) {
      Object.assign(reply, { trust_device: true, device_name: deviceName() });
    }
    try {
      await dialogue.reply(question, reply);
    } catch (error) {
      if (error instanceof Problem && error.code === "challenge_gone") dialogue.gone?.();
      throw error;
    }
  });
  onPress(byId("challenge-again"), form(), async () => {
    const before = question?.challenge_id;
    await turnToMethod(question?.method ?? "");
    const isNew = before !== question?.challenge_id;
    announce(isNew ? "A new code is on its way." : "The code is on its way already. Wait half a minute.");
  });
}

/** @param {string} method */
async function turnToMethod(method) {
  if (!dialogue) return;
  await loadFactorLabels();
  try {
    question = await dialogue.ask(method);
  } catch (error) {
    if (!question) offer((dialogue.methods ?? []).filter((each) => each !== method));
    show(byId("challenge"));
    throw error;
  }
  const { method: asked, delivery_hint: hint } = question;
  const isSent = SENT.has(asked);
  const where = hint ? ` to ${hint}` : "";
  const explained = EXPLAINED[asked];
  fill(form(), {
    explain: isSent ? `Enter the code we have sent${where}.` : explained,
    submit: asked === "webauthn" ? "Use a passkey" : "Verify",
  });
  show(byId("challenge-code"), asked !== "webauthn");
  show(byId("challenge-again"), isSent);
  dress(asked);
  show(byId("challenge"));
  offer(question.methods.filter((each) => each !== asked));
  const target = asked === "webauthn" ? within(form(), "button[type=submit]") : byId("code");
  target.focus();
}

/**
 * Set the keyboard and the autocomplete of the code's field.
 * @param {string} method
 */
function dress(method) {
  const input = /** @type {HTMLInputElement} */ (byId("code"));
  const isBackup = method === "backup_code";
  input.value = "";
  input.inputMode = isBackup ? "text" : "numeric";
  input.autocomplete = isBackup ? "off" : "one-time-code";
  // Longer than a code, so that a pasted one with blanks and dashes is not cut.
  input.maxLength = 64;
  fill(form(), { label: isBackup ? "Backup code" : "Code" });
}

/** @param {string[]} methods */
function offer(methods) {
  const buttons = methods.map((method) => {
    const button = element("button", factorLabel(method));
    button.className = "link";
    button.setAttribute("type", "button");
    onPress(button, form(), () => turnToMethod(method));
    const item = element("li");
    item.append(button);
    return item;
  });
  byId("challenge-others-list").replaceChildren(...buttons);
  show(byId("challenge-others"), methods.length > 0);
}
