// @ts-check
/** Files that the browser saves. */

import { call } from "./api.js";

/** How long the browser may take to begin reading a file. */
const KEPT_MS = 60_000;

/**
 * Fetch a file of the API and have the browser save it.
 * @param {string} path
 * @param {string} type its media type
 * @param {string} name
 */
export async function download(path, type, name) {
  save(name, await call("GET", path, undefined, { headers: { Accept: type }, as: "blob" }));
}

/**
 * Have the browser save a text or a body under a name.
 * @param {string} name
 * @param {Blob | string} content
 * @param {string} [type]
 */
export function save(name, content, type = "text/plain") {
  const blob = typeof content === "string" ? new Blob([content], { type }) : content;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
