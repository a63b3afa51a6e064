// @ts-check
/** An admin's reset of a member's second factors. */

import { post } from "../lib/api.js";
import { byId } from "../lib/dom.js";
import { clearProblem, onSubmit } from "../lib/forms.js";
import { announce } from "../lib/status.js";

/** @type {{user_id: string, email: string} | null} */
let chosen = null;

export function bindReset() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("reset-dialog"));
  byId("reset-cancel").addEventListener("click", () => dialog.close());
  onSubmit(/** @type {HTMLFormElement} */ (byId("reset-form")), async ({ reason }) => {
    if (!chosen) return;
    await post(`/v1/members/${chosen.user_id}/factors/reset`, { reason });
    dialog.close();
    announce(`The second factors of ${chosen.email} are removed.`);
  });
}

/** @param {{user_id: string, email: string}} member */
export function openReset(member) {
  chosen = member;
  const form = /** @type {HTMLFormElement} */ (byId("reset-form"));
  form.reset();
  clearProblem(form);
  byId("reset-title").textContent = `Reset the second factors of ${member.email}?`;
  /** @type {HTMLDialogElement} */ (byId("reset-dialog")).showModal();
}
