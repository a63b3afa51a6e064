// @ts-check
/** Passkeys: the API's JSON on one side, the browser's buffers on the other. */

import { Cancelled, Problem } from "../lib/problem.js";

// Passkeys belong to names: browsers refuse them on an address.
const ADDRESS = /^(\d+\.\d+\.\d+\.\d+|\[.*\])$/;

/** True if the console is open at an IP address instead of a host name. */
export function isOnAddress() {
  return ADDRESS.test(location.hostname);
}

/** True if this browser supports passkeys here. */
export function isAvailable() {
  return typeof PublicKeyCredential === "function" && !isOnAddress();
}

/**
 * Have the browser make a passkey.
 * @param {any} options creation options in JSON (WebAuthn L3 §5.1.9)
 * @returns {Promise<object>} the credential in JSON
 */
export async function create(options) {
  const publicKey = {
    ...options,
    challenge: bytes(options.challenge),
    user: { ...options.user, id: bytes(options.user.id) },
    excludeCredentials: described(options.excludeCredentials),
  };
  const made = await ask(() => navigator.credentials.create({ publicKey }));
  const response = /** @type {AuthenticatorAttestationResponse} */ (made.response);
  return {
    ...common(made),
    response: {
      clientDataJSON: text(response.clientDataJSON),
      attestationObject: text(response.attestationObject),
      transports: response.getTransports?.() ?? [],
    },
  };
}

/**
 * Have the browser prove a passkey.
 * @param {any} options request options in JSON (WebAuthn L3 §5.1.10)
 * @param {{signal?: AbortSignal, mediation?: CredentialMediationRequirement}} [how]
 * @returns {Promise<object>} the credential in JSON
 */
export async function prove(options, how = {}) {
  const publicKey = {
    ...options,
    challenge: bytes(options.challenge),
    allowCredentials: described(options.allowCredentials),
  };
  const given = await ask(() => navigator.credentials.get({ publicKey, ...how }));
  const response = /** @type {AuthenticatorAssertionResponse} */ (given.response);
  return {
    ...common(given),
    response: {
      clientDataJSON: text(response.clientDataJSON),
      authenticatorData: text(response.authenticatorData),
      signature: text(response.signature),
      userHandle: response.userHandle ? text(response.userHandle) : null,
    },
  };
}

/**
 * @param {() => Promise<Credential | null>} question
 * @returns {Promise<PublicKeyCredential>}
 */
async function ask(question) {
  try {
    const given = await question();
    if (given) return /** @type {PublicKeyCredential} */ (given);
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    if (error.name === "AbortError") throw new Cancelled();
    throw new Problem(0, { code: "passkey_failed", title: REASONS[error.name] ?? REASONS.NotAllowedError });
  }
  throw new Cancelled();
}

/** @type {Record<string, string>} */
const REASONS = {
  // The browser tells neither a refusal nor a missing passkey apart, on purpose.
  NotAllowedError: "No passkey was used. You can try again, or choose another way.",
  InvalidStateError: "This device holds a passkey for this account already.",
  SecurityError: "Passkeys do not work on this address.",
  NotSupportedError: "This device cannot make such a passkey.",
};

/** @param {PublicKeyCredential} credential */
function common(credential) {
  return {
    id: credential.id,
    rawId: text(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment,
    clientExtensionResults: credential.getClientExtensionResults(),
  };
}

/** @param {{id: string, type: string, transports?: string[]}[]} [credentials] */
function described(credentials = []) {
  return credentials.map((each) => ({ ...each, id: bytes(each.id) }));
}

/** @param {string} base64url */
function bytes(base64url) {
  const base64 = base64url.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** @param {ArrayBuffer} buffer */
function text(buffer) {
  const base64 = btoa(String.fromCharCode(...new Uint8Array(buffer)));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
