// @ts-check
/**
 * To an identity provider and back. The code that comes back is of use only with the verifier that
 * stays here (PKCE, RFC 7636), and counts only with the state that this tab has set out with.
 */

import { get, post } from "../lib/api.js";
import { Problem } from "../lib/problem.js";

/** @typedef {{name: string, title: string, start_url: string}} Provider */
/**
 * @typedef {object} PendingSignIn what waits in this tab until the browser comes back
 * @property {Provider} provider
 * @property {string} verifier
 * @property {string} state
 * @property {string} search of the page, to be restored
 * @property {string} [invitationId] to be accepted with a new account
 */
/**
 * @typedef {object} Return
 * @property {string} title of the provider
 * @property {() => Promise<any>} exchange gives the answer of the API, or throws what went wrong
 * @property {(code: string, invitationId: string | null) => Promise<any>} join exchanges the code of a
 *   question about invitations
 */

export const LINKED_ACCOUNTS = "/console/linked-accounts";
const SIGN_IN = "/console/sign-in";
const KEPT = "zonal-external";
const PENDING = "zonal-link";

/**
 * Return the providers of this installation.
 * @returns {Promise<Provider[]>}
 */
export async function providers() {
  // Browsers hash only on secure pages; localhost is one.
  return crypto.subtle ? (await get("/v1/auth/oauth/providers")).providers : [];
}

/**
 * True if the provider redirects browsers to this address.
 * @param {Provider} provider
 */
export function isAtHome(provider) {
  return new URL(provider.start_url).origin === location.origin;
}

/**
 * Go to a provider to sign in; from another address of the service to this page at the right one.
 * @param {Provider} provider
 * @param {{invitationId?: string, fragment?: string}} [invited] the invitation to accept, and what
 *   opens it at another address
 */
export async function signInWith(provider, { invitationId, fragment = "" } = {}) {
  if (!isAtHome(provider)) {
    location.assign(new URL(location.pathname + location.search + fragment, provider.start_url));
    return;
  }
  const query = new URLSearchParams(await setOut(provider, SIGN_IN, invitationId));
  location.assign(`${provider.start_url}?${query}`);
}

/**
 * Go to a provider to link an account there.
 * @param {Provider} provider
 */
export async function linkWith(provider) {
  const wish = await setOut(provider, LINKED_ACCOUNTS);
  const { start_url } = await post(`/v1/auth/oauth/${provider.name}/link`, wish);
  location.assign(start_url);
}

/**
 * @param {Provider} provider
 * @param {string} page to come back to
 * @param {string} [invitationId]
 */
async function setOut(provider, page, invitationId) {
  const kept = { provider, verifier: random(), state: random(), search: location.search, invitationId };
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
  const hashed = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(kept.verifier));
  const code_challenge = encoded(new Uint8Array(hashed));
  return { redirect_to: location.origin + page, state: kept.state, code_challenge };
}

/**
 * Take what the browser has come back with off the address; null where it has not been away.
 * @returns {Return | null}
 */
export function takeReturn() {
  const query = new URLSearchParams(location.search);
  const [code, error] = [query.get("code"), query.get("error")];
  if (!code && !error) return null;
  /** @type {PendingSignIn | null} */
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  sessionStorage.removeItem(KEPT);
  history.replaceState(null, "", location.pathname + (kept?.search ?? ""));
  if (!kept || kept.state !== query.get("state")) {
    return failed("", "This did not begin in this tab. Begin again.");
  }
  const { title } = kept.provider;
  if (!code) return failed(title, query.get("error_description") || "That did not work.");
  const { invitationId, verifier } = kept;
  const chosen = invitationId ? { invitation_id: invitationId } : {};
  /** @param {object} body */
  const exchanged = (body) => post("/v1/auth/oauth/token", { code_verifier: verifier, ...body });
  return {
    title,
    exchange: () => exchanged({ code, ...chosen }),
    join: (joinCode, invitation_id) => exchanged({ code: joinCode, invitation_id }),
  };
}

/**
 * @param {string} title
 * @param {string} sentence
 * @returns {Return}
 */
function failed(title, sentence) {
  const refuse = () => Promise.reject(new Problem(0, { title: sentence }));
  return { title, exchange: refuse, join: refuse };
}

/** @typedef {{provider: string, title: string, link_token: string}} Pending */

/**
 * Keep what links an account at a provider, until its owner has signed in.
 * @param {Pending} pending
 */
export function keepPending(pending) {
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
}

/** True if an account at a provider waits to be linked. */
export function hasPending() {
  return sessionStorage.getItem(PENDING) !== null;
}

/**
 * Take what waits to be linked: it is tried once.
 * @returns {Pending | null}
 */
export function takePending() {
  const kept = sessionStorage.getItem(PENDING);
  sessionStorage.removeItem(PENDING);
  return JSON.parse(kept ?? "null");
}

/** Return 256 random bits. */
function random() {
  return encoded(crypto.getRandomValues(new Uint8Array(32)));
}

/** @param {Uint8Array} bytes */
function encoded(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
