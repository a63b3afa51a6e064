// @ts-check
/**
 * Several tabs share one sign-in: what one of them changes holds in all. A tab that still showed
 * `sandbox` while its queries went to `live` would be a trap.
 */

import { callNothing } from "./api.js";

const channel = new BroadcastChannel("zonal-console");

/** Have the other tabs loaded anew. */
export function tellOthers() {
  channel.postMessage("changed");
}

/**
 * Load this tab anew when another one changes who or where it is. It may stay, as while files are
 * uploaded and the visitor wants to wait for them: it calls nothing any more, since what it shows is
 * not where its calls would go.
 */
export function listen() {
  channel.addEventListener("message", () => {
    callNothing();
    location.reload();
  });
}
