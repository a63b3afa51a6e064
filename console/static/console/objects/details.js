// @ts-check
/** One object: what it is, what it looks like, a link to it. */

import { copy } from "../lib/clipboard.js";
import { get, post } from "../lib/api.js";
import { byId, element, fill, show } from "../lib/dom.js";
import { bytes, moment } from "../lib/format.js";
import { attempt, clearProblem, onPress } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { announce, tell } from "../lib/status.js";
import { deleteKeys } from "./deletion.js";
import { bucketPath, nameOf, note, objectsOf } from "./place.js";
import { isImage, preview } from "./preview.js";
import { purge } from "./purge.js";
import { bindVersions, showVersions } from "./versions.js";

/** @typedef {import("./deletion.js").Bucket} Bucket */

/** @type {{bucket: Bucket, key: string, type: string, gone: () => Promise<void>} | null} */
let open = null;

/** @param {boolean} mayWrite */
export function bindDetails(mayWrite) {
  const dialog = drawer();
  dialog.addEventListener("close", () => {
    if (open) note({ object: "" });
    open = null;
    byId("preview").replaceChildren();
    forgetLink();
  });
  onPress(byId("download"), dialog, async () => {
    if (open) saveFrom(await urlOf("attachment", 300));
  });
  byId("copy-key").addEventListener("click", () => open && copy(pathOf(open), "The key is"));
  onPress(byId("delete-object"), dialog, async () => {
    if (!open) return;
    const { bucket, key, gone } = open;
    await deleteKeys(bucket, [key]);
    dialog.close();
    await gone();
  });
  onPress(byId("purge-object"), dialog, async () => {
    if (open) await purge({ keys: [pathOf(open)] }, nameOf(open.key));
  });
  bindShare();
  bindVersions(mayWrite);
}

/** Close it for another place, which the address names. */
export function closeDetails() {
  open = null;
  drawer().close();
}

/**
 * @param {Bucket} bucket
 * @param {string} key
 * @param {{gone: () => Promise<void>, changed: () => Promise<void>}} options called when the object was deleted, or another version is current
 */
export async function openDetails(bucket, key, { gone, changed }) {
  const dialog = drawer();
  const mine = { bucket, key, type: "", gone };
  open = mine;
  note({ object: key });
  fill(dialog, { name: nameOf(key) });
  dialog.removeAttribute("data-gone");
  byId("object-facts").replaceChildren();
  byId("preview").replaceChildren(element("p", "Loading…"));
  clearProblem(dialog);
  if (!dialog.open) dialog.showModal();
  byId("details-title").focus();
  await attempt(dialog, async () => {
    const found = await detailsOf(bucket, key);
    if (open !== mine) return;
    dialog.toggleAttribute("data-gone", !found);
    const hasVersions = await showVersions({
      bucket,
      key,
      download: async (version_id) => saveFrom(await urlOf("attachment", 300, version_id)),
      changed: async () => {
        await openDetails(bucket, key, { gone, changed });
        await changed();
      },
    });
    if (open !== mine) return;
    const why = hasVersions ? "It was deleted, and has versions." : "It may have been deleted.";
    if (!found) throw new Problem(404, { title: `There is no object ${pathOf(mine)}. ${why}` });
    mine.type = found.content_type;
    byId("object-facts").replaceChildren(...factsOf(mine, found));
    const shown = await preview(found, () => urlOf("inline", 300));
    if (open === mine) byId("preview").replaceChildren(shown);
  });
}

/**
 * Return what the API says of an object, null if there is none.
 * @param {Bucket} bucket
 * @param {string} key
 */
export async function detailsOf({ name }, key) {
  try {
    return await get(`${objectsOf(name)}/details?${new URLSearchParams({ key })}`);
  } catch (error) {
    if (error instanceof Problem && error.code === "object_not_found") return null;
    throw error;
  }
}

function drawer() {
  return /** @type {HTMLDialogElement} */ (byId("details"));
}

/** @param {{bucket: Bucket, key: string}} object */
function pathOf({ bucket, key }) {
  return `${bucket.name}/${key}`;
}

/**
 * Have the browser save what a URL returns. In a frame: to go there asks whether to leave the page while
 * files are uploaded.
 * @param {string} url
 */
function saveFrom(url) {
  const frame = document.createElement("iframe");
  frame.hidden = true;
  frame.src = url;
  // What is saved is not loaded.
  frame.addEventListener("load", () => tell(new Problem(0, { title: "The object could not be downloaded." })));
  document.body.append(frame);
}

/**
 * @param {{bucket: Bucket, key: string}} object
 * @param {any} found
 */
function factsOf(object, found) {
  const facts = [
    ["Key", pathOf(object)],
    ["Size", `${bytes(found.size)} (${found.size.toLocaleString()} bytes)`],
    ["Type", found.content_type],
    ["Changed", moment(Date.parse(found.last_modified) / 1000)],
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
 * @param {string} [version_id] of an older version
 * @returns {Promise<string>}
 */
async function urlOf(disposition, expires_in_s, version_id) {
  if (!open) throw new Error("No object is open.");
  const { url } = await post(`${objectsOf(open.bucket.name)}/download-url`, { key: open.key, disposition, expires_in_s, version_id });
  return url;
}

// --- links to share ---------------------------------------------------------------------------

// Longer links are signed ones: the public door serves them, and all of a bucket can be revoked.
const PRESIGNED_S = 3600;

/** @param {number} expires_in_s */
async function linkOf(expires_in_s) {
  if (!open) throw new Error("No object is open.");
  // Only pictures are shown by a browser; anything else is saved.
  if (expires_in_s <= PRESIGNED_S) return urlOf(isImage(open.type) ? "inline" : "attachment", expires_in_s);
  const { url } = await post(`${bucketPath(open.bucket.name)}/signed-links`, { key: open.key, expires_in_s });
  return url;
}

function bindShare() {
  const section = byId("share");
  const expiry = /** @type {HTMLSelectElement} */ (byId("share-expiry"));
  const field = /** @type {HTMLInputElement} */ (byId("share-url"));
  onPress(byId("share-create"), section, async () => {
    if (!open) return;
    const seconds = Number(expiry.value);
    field.value = await linkOf(seconds);
    const end = moment(Date.now() / 1000 + seconds);
    fill(section, { until: `Works until ${end}${seconds > PRESIGNED_S ? ", unless the bucket's links are revoked" : ""}.` });
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
