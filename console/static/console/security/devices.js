// @ts-check
/** Trusted devices. */

import { call, list } from "../lib/api.js";
import { byId } from "../lib/dom.js";
import { day } from "../lib/format.js";
import { showRemovableList } from "../lib/removable_list.js";

const PATH = "/v1/auth/2fa/trusted-devices";

/** @param {(done: string) => Promise<void>} refresh */
export async function showDevices(refresh) {
  const rows = await list(PATH);
  const things = rows.map((row) => ({
    name: row.name,
    about: `Last used ${day(row.last_used_at)}, trusted until ${day(row.expires_at)}`,
    remove: async () => {
      await call("DELETE", `${PATH}/${row.id}`);
      await refresh(`${row.name} is no longer trusted.`);
    },
  }));
  showRemovableList(byId("device-list"), byId("devices"), things, "There are none.");
}
