// @ts-check
/** The versions of one object, in its drawer: read, restored and deleted one by one; and what was deleted in a folder. */

import { get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { bytes, moment } from "../lib/format.js";
import { onPress } from "../lib/forms.js";
import { announce } from "../lib/status.js";
import { nameOf, objectsOf } from "./place.js";

/** @typedef {import("./deletion.js").Bucket} Bucket */
/** @typedef {{key: string, version_id: string, size: number | null, last_modified: string, is_latest: boolean, is_delete_marker: boolean}} Version */
/**
 * @typedef {object} Shown
 * @property {Bucket} bucket
 * @property {string} key
 * @property {(version_id: string) => Promise<void>} download
 * @property {() => Promise<void>} changed called when another version is current, or none
 */

const PAGE = 100;
const FOLDER_PAGE = 1000;

let mayWrite = false;
/** @type {Shown | null} */
let shown = null;
let next = { after: "", after_version: "" };

/** @param {boolean} may */
export function bindVersions(may) {
  mayWrite = may;
  onPress(byId("versions-more"), byId("versions"), () => addPage());
}

/**
 * Show the versions of an object; return whether there are any.
 * @param {Shown} what
 */
export async function showVersions(what) {
  shown = what;
  next = { after: "", after_version: "" };
  byId("version-list").replaceChildren();
  show(byId("versions"), Boolean(what.bucket.versioning));
  if (what.bucket.versioning) await addPage();
  return byId("version-list").childElementCount > 0;
}

async function addPage() {
  const mine = shown;
  if (!mine) return;
  const query = new URLSearchParams({ prefix: mine.key, limit: String(PAGE), ...next });
  const page = await get(`${objectsOf(mine.bucket.name)}/versions?${query}`);
  if (shown !== mine) return;
  // The key's own come first; other keys may begin with it.
  const own = page.versions.filter((/** @type {Version} */ { key }) => key === mine.key);
  byId("version-list").append(...own.map((/** @type {Version} */ version) => rowOf(mine, version)));
  next = { after: page.next_after ?? "", after_version: page.next_version };
  show(byId("versions-more"), page.next_after === mine.key && Boolean(page.next_version));
}

/**
 * @param {Shown} what
 * @param {Version} version
 */
function rowOf(what, version) {
  const row = stamp("version-row");
  const { version_id, size, is_latest, is_delete_marker } = version;
  const state = is_delete_marker ? "Deleted" : bytes(size ?? 0);
  const at = moment(Date.parse(version.last_modified) / 1000);
  fill(row, { state: is_latest ? `${state}, current` : state, at, id: version_id });
  const named = { key: what.key, version_id };
  /** @type {Record<string, {isOffered: boolean, name: string, act: () => Promise<void>}>} */
  const actions = {
    download: { isOffered: !is_delete_marker, name: "Download", act: () => what.download(version_id) },
    restore: { isOffered: mayWrite && !is_delete_marker && !is_latest, name: "Restore", act: () => restore(what, named) },
    remove: { isOffered: mayWrite, name: is_delete_marker ? "Remove the deletion" : "Delete", act: () => remove(what, named, is_delete_marker) },
  };
  for (const [action, { isOffered, name, act }] of Object.entries(actions)) {
    const button = within(row, `[data-action="${action}"]`);
    button.textContent = name;
    button.setAttribute("aria-label", `${name}: version of ${at}, ${state}`);
    show(button, isOffered);
    onPress(button, byId("versions"), act);
  }
  return row;
}

/**
 * @param {Shown} what
 * @param {{key: string, version_id: string}} named
 */
async function restore(what, named) {
  await post(`${objectsOf(what.bucket.name)}/versions/restore`, named);
  announce(`${nameOf(what.key)} is restored.`);
  await what.changed();
}

/**
 * @param {Shown} what
 * @param {{key: string, version_id: string}} named
 * @param {boolean} isMarker
 */
async function remove(what, named, isMarker) {
  if (!isMarker) await confirm(`Delete this version of ${nameOf(what.key)}?`, "This cannot be undone.", "Delete");
  await post(`${objectsOf(what.bucket.name)}/versions/delete`, named);
  announce(isMarker ? "The deletion is undone." : "The version is deleted.");
  await what.changed();
}

/**
 * Return the objects of a folder that were deleted, and have versions; of its first thousand versions.
 * @param {Bucket} bucket
 * @param {string} prefix
 * @returns {Promise<Version[]>}
 */
export async function deletedIn(bucket, prefix) {
  const query = new URLSearchParams({ prefix, delimiter: "/", limit: String(FOLDER_PAGE) });
  const { versions } = await get(`${objectsOf(bucket.name)}/versions?${query}`);
  return versions.filter((/** @type {Version} */ { is_latest, is_delete_marker }) => is_latest && is_delete_marker);
}
