// @ts-check
/** Confirm that it is you: a dialog before what takes a recent proof. */

import { get, post } from "../lib/api.js";
import { challenge, forget } from "../factors/challenge.js";
import { byId, show } from "../lib/dom.js";
import { onSubmit } from "../lib/forms.js";
import { signInAgain } from "../lib/navigation.js";
import { Cancelled } from "../lib/problem.js";

/** @type {{done: () => void, failed: (error: Error) => void} | null} */
let waiting = null;
/** The answer that is waited for, by all calls that need it. @type {Promise<void> | null} */
let asked = null;
let isBound = false;

/**
 * Ask for the proof that the API wants, once for all calls that wait for it.
 * @param {"password" | "second_factor"} proof
 * @returns {Promise<void>}
 * @throws {Cancelled}
 */
export function stepUp(proof) {
  asked ??= ask(proof).finally(() => {
    asked = null;
  });
  return asked;
}

/**
 * @param {"password" | "second_factor"} proof
 * @returns {Promise<void>}
 */
function ask(proof) {
  bind();
  const isPassword = proof === "password";
  show(byId("confirm-form"), isPassword);
  show(byId("step-up-again"), isPassword);
  dialog().showModal();
  if (isPassword) byId("confirm-password").focus();
  else void challenge({ ask: question, reply });
  return new Promise((done, failed) => {
    waiting = { done: () => done(undefined), failed };
  });
}

function dialog() {
  return /** @type {HTMLDialogElement} */ (byId("step-up"));
}

function bind() {
  if (isBound) return;
  isBound = true;
  const form = /** @type {HTMLFormElement} */ (byId("confirm-form"));
  onSubmit(form, async ({ password }) => {
    await post("/v1/auth/reauthenticate", { password });
    finish();
  });
  byId("step-up-cancel").addEventListener("click", () => dialog().close());
  byId("step-up-again").addEventListener("click", signInAgain);
  dialog().addEventListener("close", () => {
    form.reset();
    forget();
    waiting?.failed(new Cancelled());
    waiting = null;
  });
}

function finish() {
  waiting?.done();
  waiting = null;
  dialog().close();
}

/** @param {string} method */
function question(method) {
  return get(`/v1/auth/2fa/challenge${method ? `?method=${method}` : ""}`);
}

/**
 * @param {import("../factors/challenge.js").Question} question
 * @param {import("../factors/challenge.js").Reply} given
 */
async function reply({ challenge_id }, given) {
  await post(`/v1/auth/2fa/challenge/${challenge_id}/verify`, given);
  finish();
}
