// @ts-check
/** What a sign-in says that took the address from an account that never verified it. */

import { get } from "../lib/api.js";
import { byId, fill, turnTo } from "../lib/dom.js";

/**
 * True if another account lost its address to the one that has signed in.
 * @param {{warnings?: {code: string}[]}} answer of a sign-in
 */
export function isMoved({ warnings = [] }) {
  return warnings.some(({ code }) => code === "address_moved");
}

/**
 * Show what became of the other account, then go on; go on immediately where there was none.
 * @param {{warnings?: {code: string}[]}} answer of a sign-in
 * @param {() => void} goOn
 */
export async function afterMove(answer, goOn) {
  if (!isMoved(answer)) {
    goOn();
    return;
  }
  const { email, organization } = await get("/v1/whoami");
  fill(byId("moved"), { email, organization });
  byId("moved-continue").addEventListener("click", goOn, { once: true });
  turnTo(byId("moved"));
}
