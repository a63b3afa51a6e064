// @ts-check
/** Deletes objects, after a question that says how much it is. */

import { get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { bytes, count } from "../lib/format.js";
import { announce } from "../lib/status.js";
import { nameOf, objectsOf } from "./place.js";

/** @typedef {{name: string, origin: string | null, versioning?: string}} Bucket */

const AT_ONCE = 1000;

/**
 * @param {Bucket} bucket
 * @param {string[]} keys
 * @throws {import("../lib/problem.js").Cancelled}
 */
export async function deleteKeys(bucket, keys) {
  const what = keys.length === 1 ? nameOf(keys[0]) : count(keys.length, "object");
  await confirm(`Delete ${what}?`, warningOf(bucket), "Delete");
  await remove(bucket, keys);
  announce(`${count(keys.length, "object")} deleted.`);
}

/**
 * Delete folders with all that is in them, and objects.
 * @param {Bucket} bucket
 * @param {string[]} folders
 * @param {string[]} keys
 * @throws {import("../lib/problem.js").Cancelled}
 */
export async function deleteAll(bucket, folders, keys) {
  announce("Counting…");
  const found = [...keys];
  let size = 0;
  for (const folder of folders) {
    for (let after = ""; ; ) {
      const query = new URLSearchParams({ prefix: folder, limit: String(AT_ONCE), after });
      const page = await get(`${objectsOf(bucket.name)}?${query}`);
      for (const each of page.objects) {
        found.push(each.key);
        size += each.size;
      }
      if (page.next_after === null) break;
      after = page.next_after;
    }
  }
  const names = folders.length === 1 && !keys.length ? nameOf(folders[0]) : count(folders.length + keys.length, "item");
  await confirm(`Delete ${names}?`, `${count(found.length, "object")}, ${bytes(size)} in folders. ${warningOf(bucket)}`, "Delete");
  for (let start = 0; start < found.length; start += AT_ONCE) {
    announce(`Deleting: ${start.toLocaleString()} of ${found.length.toLocaleString()}`);
    await remove(bucket, found.slice(start, start + AT_ONCE));
  }
  announce(`${count(found.length, "object")} deleted.`);
}

/** @param {Bucket} bucket */
function warningOf({ origin, versioning }) {
  if (versioning === "Enabled") return "The versions stay, and can be restored.";
  return origin ? `This deletes at the origin ${origin}, too, and cannot be undone.` : "This cannot be undone.";
}

/**
 * @param {Bucket} bucket
 * @param {string[]} keys
 */
async function remove(bucket, keys) {
  await post(`${objectsOf(bucket.name)}/delete`, { keys });
}
