// @ts-check
/**
 * Several tabs share one sign-in: what one of them changes holds in all. A tab that still showed
 * `sandbox` while its queries went to `live` would be a trap.
 */

const channel = new BroadcastChannel("zonal-console");

/** Have the other tabs loaded anew. */
export function tellOthers() {
  channel.postMessage("changed");
}

/** Load this tab anew when another one changes who or where it is. */
export function listen() {
  channel.addEventListener("message", () => location.reload());
}
