// @ts-check
/** Host names of one bucket, with the DNS records that each needs. */

import { call, get, post } from "../lib/api.js";
import { copy } from "../lib/clipboard.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { dated } from "../lib/format.js";
import { attempt, onPress, onSubmit } from "../lib/forms.js";
import { Cancelled, Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { bucketPath } from "./place.js";

/** @typedef {{type: string, name: string, value: string}} DnsRecord */

const NO_CNAME = "Point the host at the server in front of the object API, too: it has no name for a CNAME.";

let mayChange = false;
/** @type {any} */
let bucket = null;

/** @param {boolean} isAdmin */
export function bindHosts(isAdmin) {
  mayChange = isAdmin;
  const form = /** @type {HTMLFormElement} */ (byId("host-form"));
  const field = /** @type {HTMLInputElement} */ (byId("host"));
  field.addEventListener("input", () => show(byId("host-record"), false));
  // A draft that is discarded empties the field without an event of the field's.
  form.addEventListener("click", () => {
    if (!field.value) show(byId("host-record"), false);
  });
  onSubmit(form, async ({ host }) => {
    try {
      await post(pathOf(), { host });
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "host_not_proved") throw error;
      const isNew = byId("host-record").hidden;
      await showNeeded(host);
      if (!isNew) throw error;
      announce("Its records are needed.");
      // No problem to show, and what was typed is kept: the records are shown again by it.
      throw new Cancelled();
    }
    form.reset();
    show(byId("host-record"), false);
    announce(`${host} serves this bucket.`);
    await showHosts();
  });
}

/**
 * Show a bucket's hosts, and again what a host needs that was typed before and is not proved.
 * @param {any} shown
 */
export async function showHostsOf(shown) {
  bucket = shown;
  const form = /** @type {HTMLFormElement} */ (byId("host-form"));
  form.reset();
  form.dataset.draft = bucket.name;
  restoreDraft(form);
  show(byId("host-record"), false);
  await showHosts();
  const { value } = /** @type {HTMLInputElement} */ (byId("host"));
  if (mayChange && value.trim()) await attempt(form, () => showNeeded(value));
}

async function showHosts() {
  const about = bucket.is_public
    ? "This bucket is served at your own host names, too: the whole path is the key."
    : "A private bucket is served at host names to those with a signed link.";
  fill(byId("hosts"), { "hosts-about": about });
  const list = byId("host-list");
  await attempt(byId("hosts"), async () => {
    const { results } = await get(pathOf());
    list.replaceChildren(...results.map(hostRow));
    if (!results.length) list.append(element("li", "There are none."));
  });
}

/** @param {any} row */
function hostRow({ host, proved_at, gone_since, record, cname }) {
  const made = stamp("host-row");
  const state = gone_since
    ? `Its TXT record is missing since ${dated(gone_since)}: restore it. After three days the host is removed.`
    : `Proved ${dated(proved_at)}; its TXT record is there.`;
  fill(made, { host, state });
  const site = within(made, '[data-slot="site"]');
  site.setAttribute("href", `https://${host}/`);
  site.setAttribute("aria-label", `Open the website at ${host}`);
  show(site, bucket.is_public && bucket.website_index !== "");
  showRecords(made, record, cname);
  within(made, "details").toggleAttribute("open", Boolean(gone_since));
  show(within(made, ".actions"), mayChange);
  const [check, remove] = ["check", "remove"].map((name) => within(made, `[data-action="${name}"]`));
  show(check, Boolean(gone_since));
  check.setAttribute("aria-label", `Check ${host}`);
  remove.setAttribute("aria-label", `Remove ${host}`);
  onPress(check, byId("hosts"), async () => {
    await post(pathOf(), { host });
    announce(`The record of ${host} is there.`);
    await showHosts();
  });
  onPress(remove, byId("hosts"), async () => {
    await confirm(`Remove ${host}?`, "The bucket is no longer served there, immediately.", "Remove");
    await call("DELETE", pathOf(host));
    announce(`${host} is removed.`);
    await showHosts();
  });
  return made;
}

/**
 * Show the records that a host needs, which is not proved yet.
 * @param {string} host
 */
async function showNeeded(host) {
  const { record, cname } = await get(pathOf(host.trim()));
  showRecords(byId("host-record"), record, cname);
  show(byId("host-record"));
}

/**
 * @param {HTMLElement} root
 * @param {DnsRecord} record
 * @param {DnsRecord | null} cname
 */
function showRecords(root, record, cname) {
  const shown = [recordOf(record), cname ? recordOf(cname) : element("p", NO_CNAME)];
  within(root, "[data-records]").replaceChildren(...shown);
}

/** @param {DnsRecord} record */
function recordOf({ type, name, value }) {
  const made = stamp("dns-record");
  fill(made, { type, name, value });
  for (const [part, text] of [["name", name], ["value", value]]) {
    const button = within(made, `[data-action="copy-${part}"]`);
    button.setAttribute("aria-label", `Copy the ${part} of the ${type} record of ${name}`);
    button.addEventListener("click", () => copy(text, `The ${part} is`));
  }
  return made;
}

/** @param {string} [host] */
function pathOf(host) {
  const hosts = `${bucketPath(bucket.name)}/hosts`;
  return host ? `${hosts}/${encodeURIComponent(host)}` : hosts;
}
