// @ts-check
/** Where on the page of objects one is, as its address has it; and the paths of the API for that. */

/**
 * @typedef {object} Place
 * @property {"buckets" | "files" | "settings" | "origins" | "keys"} view
 * @property {string} bucket
 * @property {string} prefix of the open folder, with its slash at the end
 */

export const BUCKETS = "/v1/cache/buckets";

/** @type {() => void} */
let moved = () => {};

/** @returns {Place} */
export function here() {
  const asked = new URLSearchParams(location.search);
  const bucket = asked.get("bucket") ?? "";
  const prefix = asked.get("prefix") ?? "";
  const view = asked.get("view") ?? "";
  if (bucket) return { view: view === "settings" ? "settings" : "files", bucket, prefix };
  return { view: view === "origins" || view === "keys" ? view : "buckets", bucket: "", prefix: "" };
}

/**
 * Return the address of a place on this page.
 * @param {Partial<Place>} place
 */
export function address({ view = "files", bucket = "", prefix = "" }) {
  const asked = new URLSearchParams();
  if (bucket) asked.set("bucket", bucket);
  if (prefix) asked.set("prefix", prefix);
  if (view === "settings" || view === "origins" || view === "keys") asked.set("view", view);
  return `?${asked}`;
}

/**
 * Go to a place without reloading the page, which would end uploads.
 * @param {string} to an address of this page
 */
export function go(to) {
  history.pushState(null, "", to);
  moved();
}

/**
 * Follow links within the page, and the browser's buttons.
 * @param {() => void} show
 */
export function follow(show) {
  moved = show;
  addEventListener("popstate", show);
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || !link.getAttribute("href")?.startsWith("?")) return;
    event.preventDefault();
    go(link.search || "?");
  });
}

/**
 * Return the path of a bucket in the API.
 * @param {string} bucket
 */
export function bucketPath(bucket) {
  return `${BUCKETS}/${encodeURIComponent(bucket)}`;
}

/**
 * Return the path of a bucket's objects in the API.
 * @param {string} bucket
 */
export function objectsOf(bucket) {
  return `${bucketPath(bucket)}/objects`;
}

/**
 * Return the last part of a key, as a folder shows it.
 * @param {string} key
 */
export function nameOf(key) {
  const plain = key.replace(/\/$/, "");
  return plain.slice(plain.lastIndexOf("/") + 1) || key;
}
