// @ts-check
/** Purges: counted first, then confirmed, then done. */

import { post, query } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { bytes, count } from "../lib/format.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/cache/purge";

/**
 * Take objects out of the cache; their bucket or its origin keeps them.
 * @param {{keys: string[]} | {prefix: string} | {tags: string[]} | {all: true}} wanted each key as `bucket/key`,
 *   each tag as `bucket/tag`
 * @param {string} name of what is purged, in the question
 * @throws {import("../lib/problem.js").Cancelled}
 */
export async function purge(wanted, name) {
  const hit = await query(PATH, { ...wanted, preview: true });
  const what = `${count(hit.objects_purged, "object")} (${bytes(hit.bytes_freed)}) on ${count(hit.nodes_affected, "node")}`;
  const text = `This takes ${what} out of the cache. Nothing is deleted: the next request fetches them again.`;
  await confirm(`Purge ${name}?`, text, "Purge");
  const done = await post(PATH, wanted);
  announce(`${count(done.objects_purged, "object")} purged, ${bytes(done.bytes_freed)} freed.`);
}
