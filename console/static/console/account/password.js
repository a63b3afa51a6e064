// @ts-check
/** A new password. */

import { get, post } from "../lib/api.js";
import { byId, show } from "../lib/dom.js";
import { onSubmit } from "../lib/forms.js";
import { count } from "../lib/format.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/auth/password";

/**
 * @param {string} email whose password it is
 * @param {() => Promise<void>} refresh shows the sessions that are left
 */
export function bindPassword(email, refresh) {
  /** @type {HTMLInputElement} */ (byId("password-owner")).value = email;
  const form = /** @type {HTMLFormElement} */ (byId("password-form"));
  onSubmit(form, async (values) => {
    const { ended } = await change({
      current_password: values.current_password || undefined,
      password: values.password,
      end_other_sessions: "end_other_sessions" in values,
    });
    form.reset();
    await Promise.all([showPassword(), refresh()]);
    const others = ended ? ` ${count(ended, "other session")} ended.` : "";
    announce(`Your password is changed.${others}`);
  });
}

/** Ask for the present password if there is one: users of a provider may have none. */
export async function showPassword() {
  const { has_password } = await get(PATH);
  show(byId("present"), has_password);
}

/** @param {object} body */
async function change(body) {
  try {
    return await post(PATH, body);
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "invalid_credentials") throw error;
    // Shown at the password, since the address is known to be right.
    const message = "This is not your present password, or it was tried too often.";
    const errors = [{ field: "current_password", code: "wrong", message }];
    throw new Problem(error.status, { title: message, code: error.code, errors });
  }
}
