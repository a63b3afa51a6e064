// @ts-check
/** One object: what it is, what it looks like, a link to it. */

import { copy } from "../lib/clipboard.js";
import { get, post } from "../lib/api.js";
import { byId, element, fill, show } from "../lib/dom.js";
import { bytes } from "../lib/format.js";
import { attempt, clearProblem, onPress } from "../lib/forms.js";
import { announce } from "../lib/status.js";
import { deleteKeys } from "./deletion.js";
import { nameOf, objectsOf } from "./place.js";
import { isImage, preview } from "./preview.js";
import { purge } from "./purge.js";

/** @type {{bucket: string, key: string, type: string, changed: () => Promise<void>} | null} */
let open = null;

export function bindDetails() {
  const dialog = drawer();
  dialog.addEventListener("close", () => {
    open = null;
    byId("preview").replaceChildren();
    forgetLink();
  });
  onPress(byId("download"), dialog, async () => {
    if (open) location.assign(await urlOf("attachment", 300));
  });
  byId("copy-key").addEventListener("click", () => open && copy(`${open.bucket}/${open.key}`, "The key is"));
  onPress(byId("delete-object"), dialog, async () => {
    if (!open) return;
    const { bucket, key, changed } = open;
    await deleteKeys(bucket, [key]);
    dialog.close();
    await changed();
  });
  onPress(byId("purge-object"), dialog, async () => {
    if (open) await purge({ keys: [`${open.bucket}/${open.key}`] }, nameOf(open.key));
  });
  bindShare();
}

/**
 * @param {string} bucket
 * @param {string} key
 * @param {{changed: () => Promise<void>}} options called when the object is gone
 */
export async function openDetails(bucket, key, { changed }) {
  const dialog = drawer();
  const mine = { bucket, key, type: "", changed };
  open = mine;
  fill(dialog, { name: nameOf(key) });
  byId("object-facts").replaceChildren();
  byId("preview").replaceChildren(element("p", "Loading…"));
  clearProblem(dialog);
  dialog.showModal();
  byId("details-title").focus();
  await attempt(dialog, async () => {
    const query = new URLSearchParams({ key });
    const found = await get(`${objectsOf(bucket)}/details?${query}`);
    if (open !== mine) return;
    mine.type = found.content_type;
    byId("object-facts").replaceChildren(...factsOf(bucket, found));
    const shown = await preview(found, () => urlOf("inline", 300));
    if (open === mine) byId("preview").replaceChildren(shown);
  });
}

function drawer() {
  return /** @type {HTMLDialogElement} */ (byId("details"));
}

/**
 * @param {string} bucket
 * @param {any} found
 */
function factsOf(bucket, found) {
  const facts = [
    ["Key", `${bucket}/${found.key}`],
    ["Size", `${bytes(found.size)} (${found.size.toLocaleString()} bytes)`],
    ["Type", found.content_type],
    ["Changed", new Date(found.last_modified).toLocaleString()],
    ["ETag", found.etag],
    ...Object.entries(found.headers),
    ...Object.entries(found.metadata).map(([name, value]) => [`x-amz-meta-${name}`, value]),
  ];
  return facts.map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", String(name)), element("dd", String(value)));
    return pair;
  });
}

/**
 * Have a URL signed that reads the open object.
 * @param {"inline" | "attachment"} disposition
 * @param {number} expires_in_s
 * @returns {Promise<string>}
 */
async function urlOf(disposition, expires_in_s) {
  if (!open) throw new Error("No object is open.");
  const { url } = await post(`${objectsOf(open.bucket)}/download-url`, { key: open.key, disposition, expires_in_s });
  return url;
}

// --- links to share ---------------------------------------------------------------------------

function bindShare() {
  const section = byId("share");
  const expiry = /** @type {HTMLSelectElement} */ (byId("share-expiry"));
  const field = /** @type {HTMLInputElement} */ (byId("share-url"));
  onPress(byId("share-create"), section, async () => {
    if (!open) return;
    const seconds = Number(expiry.value);
    // Only pictures are shown by a browser; anything else is saved.
    field.value = await urlOf(isImage(open.type) ? "inline" : "attachment", seconds);
    const end = new Date(Date.now() + seconds * 1000).toLocaleTimeString(undefined, { timeStyle: "short" });
    fill(section, { until: `Works until ${end}.` });
    show(byId("share-made"));
    field.focus();
    field.select();
    announce("The link is created.");
  });
  byId("share-copy").addEventListener("click", () => copy(field.value, "The link is"));
  expiry.addEventListener("change", forgetLink);
}

function forgetLink() {
  /** @type {HTMLInputElement} */ (byId("share-url")).value = "";
  show(byId("share-made"), false);
}
