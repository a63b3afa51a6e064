// @ts-check
/** Display names and formats. */

/** @type {Intl.DateTimeFormatOptions} */
const MINUTE = { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" };

/** 1,000 credits are a cent, and a credit 1,000,000 µcr. */
export const UCR_A_CENT = 1e9;

/**
 * @param {number} seconds Unix time
 * @returns {string} a day, as the reader writes it
 */
export function day(seconds) {
  return new Date(seconds * 1000).toLocaleDateString(undefined, { dateStyle: "medium" });
}

/**
 * Return a minute in the reader's zone, which it names.
 * @param {number} seconds Unix time
 */
export function moment(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, MINUTE);
}

/** Return the name of the reader's zone, with its present offset if that is another than UTC. */
export function zone() {
  const format = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" });
  const offset = format.formatToParts().find(({ type }) => type === "timeZoneName")?.value;
  const { timeZone } = format.resolvedOptions();
  return timeZone === "UTC" ? timeZone : `${timeZone} (${offset})`;
}

/** @param {string} text a moment as ISO 8601 */
export function dated(text) {
  return day(Date.parse(text) / 1000);
}

/** @param {number} number of bytes */
export function bytes(number) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  const step = number < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(number) / 3));
  const value = number / 1000 ** step;
  return `${value.toLocaleString(undefined, { maximumFractionDigits: value < 100 && step ? 1 : 0 })} ${units[step]}`;
}

/** @param {number} count */
export function number(count) {
  const isLong = Math.abs(count) >= 1e6;
  return count.toLocaleString(undefined, isLong ? { notation: "compact", maximumFractionDigits: 1 } : { maximumFractionDigits: 1 });
}

/**
 * Return an amount in credits.
 * @param {number} ucr in millionths
 */
export function credits(ucr) {
  const amount = ucr / 1e6;
  if (Math.abs(amount) >= 1e6) return number(amount);
  return amount.toLocaleString(undefined, { maximumFractionDigits: Math.abs(amount) < 100 ? 2 : 0 });
}

/**
 * Return an amount in money: 1,000 credits are a cent.
 * @param {number} ucr in millionths of a credit
 * @param {string} currency
 */
export function money(ucr, currency) {
  const amount = ucr / 1e11;
  const digits = amount !== 0 && Math.abs(amount) < 1 ? 4 : 2;
  return amount.toLocaleString(undefined, { style: "currency", currency, maximumFractionDigits: digits });
}

/** @param {number} fraction between 0 and 1 */
export function share(fraction) {
  return fraction.toLocaleString(undefined, { style: "percent", maximumFractionDigits: 1 });
}

/**
 * @param {number} number
 * @param {string} noun in the singular
 */
export function count(number, noun) {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}

/** Return a name for this browser in the list of trusted devices. */
export function deviceName() {
  return programOf(navigator.userAgent);
}

/**
 * Return a recognizable name for a browser or another program.
 * @param {string} agent as it calls itself
 */
export function programOf(agent) {
  const browsers = [["Edg/", "Edge"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"]];
  const systems = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["Linux", "Linux"]];
  const plain = agent.split(" ")[0].slice(0, 60) || "Unknown program";
  const browser = browsers.find(([mark]) => agent.includes(mark))?.[1] ?? plain;
  const system = systems.find(([mark]) => agent.includes(mark))?.[1];
  return system ? `${browser} on ${system}` : browser;
}
