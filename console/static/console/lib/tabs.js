// @ts-check
/**
 * Several tabs share one sign-in: what one of them changes holds in all. A tab that still showed
 * `sandbox` while its queries went to `live` would be a trap.
 */

import { callNothing } from "./api.js";

const channel = new BroadcastChannel("zonal-console");

/** Reload the other tabs. */
export function tellOthers() {
  channel.postMessage("changed");
}

/**
 * Reload this tab when another one changes the user or the environment. The visitor may keep it, for
 * example while files are uploaded. It then sends no more requests: they would go to another
 * environment than the one it shows.
 * @param {() => void} prepare what is done before the reload
 */
export function listen(prepare) {
  channel.addEventListener("message", () => {
    callNothing();
    prepare();
    location.reload();
  });
}
