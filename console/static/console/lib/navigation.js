// @ts-check
/** Where to go: the pages of the console, and nothing outside of them. */

import { Problem } from "./problem.js";

export const HOME = "/console/";
export const ACCOUNT = "/console/account";
const SIGN_IN = "/console/sign-in";
/** The page that a restricted session may use, by the code of the problem that restricts it. */
const RESTRICTED_TO = new Map([
  ["second_factor_due", "/console/security"],
  ["email_required", ACCOUNT],
]);

/**
 * Return the page for a session that a problem restricts; undefined for any other error.
 * @param {unknown} error
 */
export function restrictedTo(error) {
  return error instanceof Problem ? RESTRICTED_TO.get(error.code) : undefined;
}

/** Return the page that the visitor requested before signing in. */
export function wanted() {
  const next = new URLSearchParams(location.search).get("next") || HOME;
  if (!URL.canParse(next, location.origin)) return HOME;
  const place = new URL(next, location.origin);
  const isOurs = place.origin === location.origin && place.pathname.startsWith(HOME);
  return isOurs ? place.pathname + place.search : HOME;
}

/** True if a signed-in visitor signs in again for a recent proof. */
export function isAgain() {
  return new URLSearchParams(location.search).has("again");
}

/** Go and sign in again, to come back here. */
export function signInAgain() {
  const here = location.pathname + location.search;
  location.assign(`${SIGN_IN}?again=1&next=${encodeURIComponent(here)}`);
}

/** Go and sign in, to come back here. */
export function signIn() {
  const here = location.pathname + location.search;
  location.replace(here === HOME ? SIGN_IN : `${SIGN_IN}?next=${encodeURIComponent(here)}`);
}
