// @ts-check
/** The list of methods: set up, replaced, preferred, removed. Passkeys have a list of their own. */

import { call } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, turnTo, within } from "../lib/dom.js";
import { factorLabel } from "../factors/factors.js";
import { attempt, onPress } from "../lib/forms.js";
import { interruptedMethod, setUp } from "../factors/enrol.js";

/** @type {Record<string, string>} */
const ABOUT = {
  totp: "Codes from an app on your phone or computer.",
  webauthn: "In your list below.",
  sms: "Codes sent to your phone.",
  email: "Codes sent to your address.",
};

/** @typedef {(done?: string) => Promise<void>} Refresh */

/**
 * @param {any} status
 * @param {string[]} allowed by the organization
 * @param {Refresh} refresh
 */
export function showMethods(status, allowed, refresh) {
  fill(byId("factors"), { summary: summaryOf(status) });
  const names = Object.keys(ABOUT).filter(
    (method) => allowed.includes(method) || status.enabled_methods.includes(method),
  );
  byId("methods").replaceChildren(
    ...names
      .filter((method) => method !== "webauthn" || status.enabled_methods.includes(method))
      .map((method) => rowOf(method, status, allowed.includes(method), refresh)),
  );
}

/** @param {any} status */
function summaryOf(status) {
  if (status.enabled) return "Signing in takes your password and one of these.";
  return "Signing in takes your password alone. Add one of these, so that a stolen password opens nothing.";
}

/**
 * @param {string} method
 * @param {any} status
 * @param {boolean} isAllowed
 * @param {Refresh} refresh
 */
function rowOf(method, status, isAllowed, refresh) {
  const row = stamp("method-row");
  const isOn = status.enabled_methods.includes(method);
  const isDefault = status.default_method === method;
  const name = factorLabel(method);
  const about = ABOUT[method];
  fill(row, { name, about, state: isOn ? (isAllowed ? "On" : "Not allowed any more") : "Off" });
  row.classList.toggle("on", isOn && isAllowed);
  show(within(row, "[data-default]"), isDefault);
  bindDefault(row, method, isOn && !isDefault && isAllowed, refresh);
  bindSetUp(row, method, { isOn, isOffered: isAllowed && method !== "webauthn" }, refresh);
  bindRemove(row, method, isOn, refresh);
  return row;
}

/**
 * @param {HTMLElement} row
 * @param {string} action
 * @param {string} label for screen readers, which hear no row around a button
 * @param {boolean} isOffered
 */
function button(row, action, label, isOffered) {
  const found = within(row, `[data-action="${action}"]`);
  found.setAttribute("aria-label", label);
  show(found, isOffered);
  return found;
}

/**
 * @param {HTMLElement} row
 * @param {string} method
 * @param {boolean} isOffered
 * @param {Refresh} refresh
 */
function bindDefault(row, method, isOffered, refresh) {
  const name = factorLabel(method);
  onPress(button(row, "default", `Make default: ${name}`, isOffered), byId("factors"), async () => {
    await call("PUT", "/v1/auth/2fa/default", { method });
    await refresh(`${name} is what you are asked for first.`);
  });
}

/**
 * @param {HTMLElement} row
 * @param {string} method
 * @param {{isOn: boolean, isOffered: boolean}} state
 * @param {Refresh} refresh
 */
function bindSetUp(row, method, { isOn, isOffered }, refresh) {
  const verb = isOn ? "Replace" : "Set up";
  const name = factorLabel(method);
  const place = button(row, "set-up", `${verb}: ${name}`, isOffered);
  place.textContent = verb;
  onPress(place, byId("factors"), () => begin(method, refresh));
}

/**
 * @param {string} method
 * @param {Refresh} refresh
 */
async function begin(method, refresh) {
  await setUp(method, {
    done: () => void attempt(byId("factors"), () => refresh(`${factorLabel(method)} is on.`)),
    back: () => turnTo(byId("overview")),
  });
}

/**
 * Go on with the set-up that a reload has interrupted.
 * @param {Refresh} refresh
 */
export async function goOnWithSetUp(refresh) {
  const method = interruptedMethod();
  if (method) await begin(method, refresh);
}

/**
 * @param {HTMLElement} row
 * @param {string} method
 * @param {boolean} isOn
 * @param {Refresh} refresh
 */
function bindRemove(row, method, isOn, refresh) {
  const name = factorLabel(method);
  onPress(button(row, "remove", `Remove: ${name}`, isOn), byId("factors"), async () => {
    const what = method === "webauthn" ? "All of your passkeys" : `“${name}”`;
    await confirm(
      `Remove ${method === "webauthn" ? "all passkeys" : name}?`,
      `${what} will no longer sign you in, and trusted devices are deleted.`,
      "Remove",
    );
    await call("DELETE", `/v1/auth/2fa/method/${method}`);
    await refresh(`${name} is removed.`);
  });
}
