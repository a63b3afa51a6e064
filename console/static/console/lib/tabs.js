// @ts-check
/**
 * Several tabs share one sign-in: what one of them changes holds in all. A tab that still showed
 * `sandbox` while its queries went to `live` would be a trap.
 */

import { callLast, callNothing } from "./api.js";
import { confirm } from "./confirm.js";
import { forgetDrafts } from "./drafts.js";
import { isUnderWay, letLeave } from "./leaving.js";

const channel = new BroadcastChannel("zonal-console");
const SIGNED_OUT = "signed out";

/**
 * Change the session from this page, which is left then. Where something is under way it asks before: at
 * the browser's own question, the session has changed already.
 * @param {string} path
 * @param {object} body
 * @param {{title: string, action: string}} question
 * @throws {import("./problem.js").Problem | import("./problem.js").Cancelled}
 */
export async function changeSession(path, body, { title, action }) {
  const text = "Something on this page is still being sent or written. It ends, and it is not known how much of it was done.";
  if (isUnderWay()) await confirm(title, text, action);
  await callLast(path, body);
  letLeave();
}

/** Reload the other tabs. */
export function tellOthers() {
  channel.postMessage("changed");
}

/** Reload the other tabs, which forget what was typed there. */
export function tellOthersOfSignOut() {
  channel.postMessage(SIGNED_OUT);
}

/**
 * Reload this tab when another one changes the user or the environment. The visitor may keep it, for
 * example while files are uploaded. It then sends no more requests: they would go to another
 * environment than the one it shows.
 * @param {() => void} prepare what is done before the reload
 */
export function listen(prepare) {
  channel.addEventListener("message", ({ data }) => {
    callNothing();
    prepare();
    if (data === SIGNED_OUT) forgetDrafts();
    location.reload();
  });
}
