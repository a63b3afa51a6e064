// @ts-check
/** Where to go: the pages of the console, and nothing outside of them. */

export const HOME = "/console/";
const SIGN_IN = "/console/sign-in";

/** Return the page that the visitor requested before signing in. */
export function wanted() {
  const next = new URLSearchParams(location.search).get("next") || HOME;
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
