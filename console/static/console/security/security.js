// @ts-check
/** Security: one's own methods, passkeys, backup codes, devices and questions. */

import { get, post } from "../lib/api.js";
import { showCodes } from "../factors/codes.js";
import { confirm } from "../lib/confirm.js";
import { showDevices } from "./devices.js";
import { byId, fill, show, turnTo } from "../lib/dom.js";
import { loadFactorLabels } from "../factors/factors.js";
import { attempt, clearProblem, onPress } from "../lib/forms.js";
import { count, moment } from "../lib/format.js";
import { goOnWithSetUp, showMethods } from "./methods.js";
import { bindPasskeys, showPasskeys } from "./passkey_list.js";
import { bindQuestions } from "./questions.js";
import { bindReveals } from "../lib/reveal.js";
import { openPage } from "../frame/shell.js";
import { announce } from "../lib/status.js";

/** A session that its policy restricts sees nothing but what sets up a second factor. */
let isRestricted = false;

await openPage(
  () => begin(),
  () => {
    isRestricted = true;
    return begin();
  },
);

async function begin() {
  bindReveals();
  bindPasskeys(refresh);
  bindCodes();
  bindQuestions();
  for (const id of ["devices", "questions"]) show(byId(id), !isRestricted);
  await refresh();
  await goOnWithSetUp(refresh);
}

/**
 * Show the state again.
 * @param {string} [done] what has just been done, whether or not its outcome can be shown
 */
async function refresh(done) {
  try {
    const state = await showState();
    // What the session has just shown opens the rest of the page to it.
    if (isRestricted && done && state.compliant) location.reload();
  } finally {
    if (done) announce(done);
  }
}

async function showState() {
  if (byId("overview").hidden) turnTo(byId("overview"));
  await loadFactorLabels();
  const status = await get("/v1/auth/2fa/status");
  const state = await get("/v1/auth/2fa/compliance");
  clearProblem(byId("factors"));
  showRequirement(state);
  showMethods(status, state.allowed_methods, refresh);
  showCodesLeft(status);
  await attempt(byId("passkeys"), () => showPasskeys(refresh));
  if (!isRestricted) await attempt(byId("devices"), () => showDevices(refresh));
  return state;
}

/** @param {any} state of compliance */
function showRequirement(state) {
  const ends = state.grace_ends_at ? ` You have time until ${moment(state.grace_ends_at)}.` : "";
  const missing = state.reasons.includes("no_allowed_method")
    ? "Your organization does not allow the methods you have. Set up another one."
    : "Your organization requires a second factor. Set one up.";
  const text = state.compliant
    ? "Your organization requires a second factor, and you have one: sign out, and in again with it."
    : `${missing}${state.days_left ? ends : ""}`;
  fill(byId("required"), { required: text });
  show(byId("required"), !state.compliant || isRestricted);
}

/** @param {any} status */
function showCodesLeft(status) {
  const left = status.backup_codes_remaining;
  const has = left ? `You have ${count(left, "unused code")}.` : "You have none.";
  const about = status.enabled
    ? `Each works once, if you lose your other methods. ${has}`
    : "They come with your second factor, for the day you lose it.";
  fill(byId("codes"), { codes: about });
  show(byId("codes-new"), status.enabled);
}

function bindCodes() {
  onPress(byId("codes-new"), byId("codes"), async () => {
    await confirm(
      "Generate new backup codes?",
      "Every earlier backup code stops working.",
      "Generate new codes",
    );
    const { backup_codes } = await post("/v1/auth/2fa/backup-codes");
    await showCodes(backup_codes);
    await refresh("Your new backup codes are active.");
  });
}
