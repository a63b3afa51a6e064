// @ts-check
/** How things are called and written. */

/** @type {Record<string, string>} */
const METHODS = {
  totp: "Authenticator app",
  webauthn: "Passkey",
  sms: "Text message",
  email: "E-mail",
  backup_code: "Backup code",
  backup_codes: "Backup codes",
};

/** @param {string} method */
export function methodName(method) {
  return METHODS[method] ?? method;
}

/**
 * @param {number} seconds Unix time
 * @returns {string} a day, as the reader writes it
 */
export function day(seconds) {
  return new Date(seconds * 1000).toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** @param {number} seconds Unix time */
export function moment(seconds) {
  const options = /** @type {const} */ ({ dateStyle: "medium", timeStyle: "short" });
  return new Date(seconds * 1000).toLocaleString(undefined, options);
}

/**
 * @param {number} number
 * @param {string} noun in the singular
 */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Give a name for this browser, to recognize it in the list of trusted devices. */
export function deviceName() {
  const agent = navigator.userAgent;
  const browsers = [["Edg/", "Edge"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"]];
  const systems = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["Linux", "Linux"]];
  const browser = browsers.find(([mark]) => agent.includes(mark))?.[1] ?? "Browser";
  const system = systems.find(([mark]) => agent.includes(mark))?.[1];
  return system ? `${browser} on ${system}` : browser;
}
