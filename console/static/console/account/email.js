// @ts-check
/** The e-mail address: verification and change by a mailed code. */

import { call, get, post } from "../lib/api.js";
import { byId, fill, show } from "../lib/dom.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { moment } from "../lib/format.js";
import { fillIn } from "../lib/link.js";
import { announce } from "../lib/status.js";
import { tellOthers } from "../lib/tabs.js";

/**
 * @typedef {object} Mailbox
 * @property {string | null} email null for an account that lost its address
 * @property {boolean} email_verified
 * @property {string | null} pending_email
 * @property {number | null} code_expires_at
 */

const PATH = "/v1/auth/email";

/** @param {() => Promise<void>} onVerified shows the page with the verified address */
export function bindEmail(onVerified) {
  const codeForm = /** @type {HTMLFormElement} */ (byId("code-form"));
  onSubmit(codeForm, async ({ code }) => {
    await post(`${PATH}/verify`, { code });
    codeForm.reset();
    await onVerified();
    announce("Your address is verified.");
    tellOthers();
  });
  onPress(byId("code-again"), codeForm, async () => {
    showMailbox(await post(`${PATH}/resend`));
    announce("A new code is on its way. The one before no longer counts.");
  });
  onPress(byId("change-cancel"), codeForm, async () => {
    await call("DELETE", `${PATH}/change`);
    await showEmail();
    announce("Your address stays as it is.");
  });
  const form = /** @type {HTMLFormElement} */ (byId("email-form"));
  onSubmit(form, async ({ email }) => {
    showMailbox(await post(`${PATH}/change`, { email }));
    form.reset();
    byId("mail-code").focus();
    announce("A code is on its way to the new address.");
  });
}

/**
 * Show the present address.
 * @param {string} [code] that a mail's link has brought
 */
export async function showEmail(code = "") {
  showMailbox(await get(PATH));
  if (!code || byId("verification").hidden) return;
  fillIn(byId("mail-code"), code);
  byId("mail-code").focus();
}

/** @param {Mailbox} mailbox */
function showMailbox({ email, email_verified, pending_email, code_expires_at }) {
  const section = byId("email");
  const awaited = email_verified ? pending_email : (pending_email ?? email);
  fill(section, {
    email: email ?? "No address",
    state: email_verified ? "verified" : "not verified",
    awaited: awaited === null ? "" : whereToRead(awaited, code_expires_at),
  });
  section.classList.toggle("on", email_verified);
  show(byId("verification"), awaited !== null);
  show(byId("change-cancel"), pending_email !== null);
  const banner = document.getElementById("unverified");
  if (banner) show(banner, false);
}

/**
 * @param {string} address
 * @param {number | null} until
 */
function whereToRead(address, until) {
  if (!until) return `Have a code mailed to ${address}, and enter it here.`;
  return `A code was mailed to ${address}. Enter it here until ${moment(until)}.`;
}
