// @ts-check
/** One's passkeys: added, listed, removed. */

import { call, list } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, show, turnTo } from "../lib/dom.js";
import { setUp } from "../factors/enrol.js";
import { attempt, onPress } from "../lib/forms.js";
import { day } from "../lib/format.js";
import { isAvailable, isOnAddress } from "../factors/passkeys.js";
import { showRemovableList } from "../lib/removable_list.js";

const PATH = "/v1/auth/2fa/webauthn/credentials";

/** @typedef {(done?: string) => Promise<void>} Refresh */

/** @param {Refresh} refresh */
export function bindPasskeys(refresh) {
  show(byId("passkey-add"), isAvailable());
  show(byId("passkeys-elsewhere"), isOnAddress());
  onPress(byId("passkey-add"), byId("passkeys"), () =>
    setUp("webauthn", {
      done: () => void attempt(byId("passkeys"), () => refresh("Your passkey is added.")),
      back: () => turnTo(byId("overview")),
    }),
  );
}

/** @param {number | null} lastUsedAt */
function usage(lastUsedAt) {
  return lastUsedAt === null ? "not used yet" : `last used ${day(lastUsedAt)}`;
}

/** @param {Refresh} refresh */
export async function showPasskeys(refresh) {
  const rows = await list(PATH);
  const things = rows.map((row) => ({
    name: row.name,
    about: `Added ${day(row.created_at)}, ${usage(row.last_used_at)}`,
    remove: async () => {
      await confirm(
        `Remove “${row.name}”?`,
        "It will no longer sign you in, and trusted devices are deleted. Delete it on your device, too.",
        "Remove",
      );
      await call("DELETE", `${PATH}/${row.credential_id}`);
      await refresh(`${row.name} is removed.`);
    },
  }));
  showRemovableList(byId("passkey-list"), byId("passkeys"), things, "You have none.");
}
