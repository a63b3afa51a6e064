// @ts-check
/** Leaving the organization: the account is deleted. */

import { call } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId } from "../lib/dom.js";
import { onPress } from "../lib/forms.js";
import { createdBy } from "../members/created.js";
import { signOut } from "../frame/shell.js";

/** @param {{user_id: string, email: string, organization: string}} who */
export function bindLeaving({ user_id, email, organization }) {
  onPress(byId("leave"), byId("leaving"), async () => {
    await confirm(
      `Leave ${organization}?`,
      `The account is deleted now, and cannot be restored. ${await createdBy(user_id)}`,
      "Leave and delete",
      email,
    );
    await call("DELETE", `/v1/members/${user_id}`);
    // Deletes the cookies of the session that has ended.
    await signOut();
  });
}
