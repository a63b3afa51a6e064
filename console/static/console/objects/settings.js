// @ts-check
/** One bucket's settings. */

import { call, get } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { count, dated, moment } from "../lib/format.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { announce } from "../lib/status.js";
import { StoredForm, switchField, textField, wordsField } from "../lib/stored.js";
import { bindHosts, showHostsOf } from "./hosts.js";
import { address, bucketPath, go, here } from "./place.js";
import { purge } from "./purge.js";

const SWITCHES = ["is_public", "allows_redirect", "verifies_reads", "forwards_writes", "website_fallback"];
const TEXTS = ["website_index", "website_error", "log_bucket", "log_prefix"];

let mayChange = false;
/** @type {any} */
let bucket = null;
/** @type {StoredForm} */
let settings;

/** @param {boolean} isAdmin */
export function bindSettings(isAdmin) {
  mayChange = isAdmin;
  const form = /** @type {HTMLFormElement} */ (byId("switches"));
  const switches = SWITCHES.map((name) => [name, switchField(within(form, `[name="${name}"]`))]);
  const headers = wordsField(byId("forwarded-headers"));
  const texts = TEXTS.map((name) => [name, textField(within(form, `[name="${name}"]`))]);
  const versioning = versionsField(within(form, '[name="versioning"]'));
  settings = new StoredForm(form, { ...Object.fromEntries([...switches, ...texts]), forwarded_headers: headers, versioning });
  onSubmit(form, async () => {
    if (settings.changes.is_public) {
      await confirm(`Make ${bucket.name} public?`, "Anyone who knows its address can read every object in it.", "Make public");
    }
    const saved = await settings.save("PATCH", bucketPath(bucket.name));
    announce(saved ? "The settings are saved." : "Nothing is changed.");
    await showSettings();
  });
  onSubmit(/** @type {HTMLFormElement} */ (byId("tag-purge-form")), async ({ tags }) => {
    const wanted = tags.split(",").map((tag) => tag.trim()).filter(Boolean);
    await purge({ tags: wanted.map((tag) => `${bucket.name}/${tag}`) }, `what has ${wanted.join(" or ")}`);
  });
  onPress(byId("links-revoke"), byId("link-end"), async () => {
    await confirm(`Revoke all signed links of ${bucket.name}?`, "Whoever has one cannot open it any more.", "Revoke");
    await call("DELETE", `${bucketPath(bucket.name)}/signed-links`);
    announce("All signed links are revoked.");
  });
  onPress(byId("bucket-delete"), byId("bucket-end"), async () => {
    await confirm(`Delete ${bucket.name}?`, "Its settings and host names go with it.", "Delete");
    await call("DELETE", bucketPath(bucket.name));
    announce(`${bucket.name} is deleted.`);
    go("?");
  });
  bindHosts(isAdmin);
}

export async function showSettings() {
  const name = here().bucket;
  const form = /** @type {HTMLFormElement} */ (byId("switches"));
  /** @type {HTMLFormElement} */ (byId("tag-purge-form")).reset();
  // They show another bucket's settings until these are there, which would replace a change.
  for (const input of form.querySelectorAll("input")) input.disabled = true;
  bucket = await get(bucketPath(name));
  const heading = within(byId("settings"), "h2 a");
  heading.textContent = name;
  heading.setAttribute("href", address({ bucket: name }));
  showFacts();
  showWebsite();
  for (const input of form.querySelectorAll("input")) input.disabled = !mayChange;
  settings.show(bucket);
  show(byId("forwarding"), Boolean(bucket.origin));
  show(byId("versioning"), !bucket.origin);
  await showHostsOf(bucket);
  await showFailures(name);
}

/**
 * On, off, or off after it was on: what there is then stays.
 * @param {HTMLElement} input
 * @returns {import("../lib/stored.js").Field}
 */
function versionsField(input) {
  const box = /** @type {HTMLInputElement} */ (input);
  let stored = "";
  return {
    read: () => (box.checked ? "Enabled" : stored && "Suspended"),
    write(status) {
      stored = status;
      box.checked = status === "Enabled";
    },
  };
}

/** @param {string} name of the bucket */
async function showFailures(name) {
  const { results } = await get(`${bucketPath(name)}/failures`);
  byId("failure-list").replaceChildren(...results.map(failureRow));
  if (!results.length) byId("failure-list").append(element("li", "There are none."));
  show(byId("failures-docs"), results.length > 0);
}

/** @param {any} failure */
function failureRow({ cause, meaning, count: times, last_at: at }) {
  const row = stamp("failure-row");
  const last = moment(Date.parse(at) / 1000);
  fill(row, { meaning: meaning || "The response failed.", cause, about: `${count(times, "response")}, the last one ${last}` });
  return row;
}

function showWebsite() {
  const about = within(byId("website"), '[data-slot="website-about"]');
  if (!bucket.website_index) {
    about.textContent = "The pages of a public bucket are opened in a browser.";
  } else if (!bucket.public_url) {
    about.textContent = "Only a public bucket is a website.";
  } else {
    const link = element("a", bucket.public_url);
    link.setAttribute("href", bucket.public_url);
    about.replaceChildren("It is at ", link, ", and at the host names below.");
  }
}

function showFacts() {
  const from = bucket.origin ? `origin ${bucket.origin}${bucket.origin_prefix ? `, below ${bucket.origin_prefix}` : ""}` : "this platform";
  const facts = [
    ["Objects from", from],
    ["Public address", bucket.public_url ?? "none: the bucket is private"],
    ["Created", dated(bucket.created_at)],
  ];
  const pairs = facts.map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  });
  byId("bucket-facts").replaceChildren(...pairs);
}
