// @ts-check
/** Files of the API, saved by the browser. */

import { call } from "./api.js";

/**
 * Fetch a file and have the browser save it.
 * @param {string} path
 * @param {string} type its media type
 * @param {string} name
 */
export async function download(path, type, name) {
  const blob = await call("GET", path, undefined, { headers: { Accept: type }, as: "blob" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
