// @ts-check
/** One bucket's settings and its host names. */

import { call, get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { dated } from "../lib/format.js";
import { attempt, onPress, onSubmit } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { BUCKETS, address, go, here } from "./place.js";

const SWITCHES = ["is_public", "allows_redirect", "verifies_reads", "forwards_writes"];

let mayChange = false;
/** @type {any} */
let bucket = null;

/** @param {boolean} isAdmin */
export function bindSettings(isAdmin) {
  mayChange = isAdmin;
  const form = /** @type {HTMLFormElement} */ (byId("switches"));
  onSubmit(form, async (values) => {
    const given = new FormData(form);
    const wanted = Object.fromEntries(SWITCHES.map((name) => [name, given.has(name)]));
    const names = values.forwarded_headers.split(",").map((name) => name.trim()).filter(Boolean);
    if (wanted.is_public && !bucket.is_public) {
      await confirm(`Make ${bucket.name} public?`, "Anyone who knows its address can read every object in it.", "Make public");
    }
    await call("PATCH", pathOf(bucket.name), { ...wanted, ...(bucket.origin ? { forwarded_headers: names } : {}) });
    announce("The settings are saved.");
    await showSettings();
  });
  onPress(byId("bucket-delete"), byId("bucket-end"), async () => {
    await confirm(`Delete ${bucket.name}?`, "Its settings and host names go with it.", "Delete");
    await call("DELETE", pathOf(bucket.name));
    announce(`${bucket.name} is deleted.`);
    go("?");
  });
  bindHosts();
}

export async function showSettings() {
  const name = here().bucket;
  bucket = await get(pathOf(name));
  const heading = within(byId("settings"), "h2 a");
  heading.textContent = name;
  heading.setAttribute("href", address({ bucket: name }));
  showFacts();
  const form = /** @type {HTMLFormElement} */ (byId("switches"));
  for (const input of form.querySelectorAll("input")) {
    input.disabled = !mayChange;
    if (SWITCHES.includes(input.name)) input.checked = bucket[input.name];
  }
  /** @type {HTMLInputElement} */ (byId("forwarded-headers")).value = bucket.forwarded_headers.join(", ");
  show(byId("forwarding"), Boolean(bucket.origin));
  const hosts = /** @type {HTMLFormElement} */ (byId("host-form"));
  hosts.reset();
  hosts.dataset.draft = name;
  restoreDraft(hosts);
  await showHosts();
}

function showFacts() {
  const from = bucket.origin ? `origin ${bucket.origin}${bucket.origin_prefix ? `, below ${bucket.origin_prefix}` : ""}` : "this platform";
  const facts = [
    ["Objects from", from],
    ["Public address", bucket.is_public ? `/p/${bucket.public_name}/` : "none: the bucket is private"],
    ["Created", dated(bucket.created_at)],
  ];
  const pairs = facts.map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  });
  byId("bucket-facts").replaceChildren(...pairs);
}

// --- host names -------------------------------------------------------------------------------

function bindHosts() {
  const form = /** @type {HTMLFormElement} */ (byId("host-form"));
  const field = /** @type {HTMLInputElement} */ (byId("host"));
  field.addEventListener("input", () => show(byId("host-record"), false));
  onSubmit(form, async ({ host }) => {
    try {
      await post(`${pathOf(bucket.name)}/hosts`, { host });
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "host_not_proved") throw error;
      const isNew = byId("host-record").hidden;
      const { type, name, value } = error.content.record;
      fill(byId("host-record"), { type, "record-name": name, value });
      show(byId("host-record"));
      if (!isNew) throw error;
      announce("One record is needed.");
      return;
    }
    form.reset();
    show(byId("host-record"), false);
    announce(`${host} serves this bucket.`);
    await showHosts();
  });
}

async function showHosts() {
  show(byId("host-record"), false);
  const about = bucket.is_public
    ? "This bucket is served at your own host names, too: the whole path is the key."
    : "Only a public bucket is served at host names.";
  fill(byId("hosts"), { "hosts-about": about });
  const list = byId("host-list");
  await attempt(byId("hosts"), async () => {
    const { results } = await get(`${pathOf(bucket.name)}/hosts`);
    list.replaceChildren(...results.map(hostRow));
    if (!results.length) list.append(element("li", "There are none."));
  });
}

/** @param {any} row */
function hostRow({ host, proved_at, gone_since }) {
  const made = stamp("host-row");
  const state = gone_since
    ? `Its DNS record is missing since ${dated(gone_since)}; after three days the host is removed.`
    : `Proved ${dated(proved_at)}; its DNS record is there.`;
  fill(made, { host, state });
  show(within(made, ".actions"), mayChange);
  const button = within(made, "button");
  button.setAttribute("aria-label", `Remove ${host}`);
  onPress(button, byId("hosts"), async () => {
    await confirm(`Remove ${host}?`, "The bucket is no longer served there, at once.", "Remove");
    await call("DELETE", `${pathOf(bucket.name)}/hosts/${encodeURIComponent(host)}`);
    announce(`${host} is removed.`);
    await showHosts();
  });
  return made;
}

/** @param {string} name */
function pathOf(name) {
  return `${BUCKETS}/${encodeURIComponent(name)}`;
}
