// @ts-check
/** Where on the page of objects one is, as its address has it; and the paths of the API for that. */

import { linkHere } from "../frame/environment.js";

/**
 * @typedef {object} Place
 * @property {"buckets" | "files" | "settings" | "origins" | "keys"} view
 * @property {string} bucket
 * @property {string} prefix of the open folder, with its slash at the end
 * @property {string} filter what the names shown begin with
 * @property {string} object the key of the open object
 */

export const BUCKETS = "/v1/cache/buckets";

/** @type {() => void} */
let moved = () => {};
/** The address that the page shows. */
let shown = location.search;

/** @returns {Place} */
export function here() {
  const asked = new URLSearchParams(location.search);
  const [bucket, prefix, filter, object, view] = ["bucket", "prefix", "filter", "object", "view"].map((name) => asked.get(name) ?? "");
  if (bucket) return { view: view === "settings" ? "settings" : "files", bucket, prefix, filter, object };
  return { view: view === "origins" || view === "keys" ? view : "buckets", bucket: "", prefix: "", filter: "", object: "" };
}

/**
 * Return the address of a place on this page.
 * @param {Partial<Place>} place
 */
export function address({ view = "files", ...state }) {
  const isNamed = view === "settings" || view === "origins" || view === "keys";
  return linkHere({ ...state, view: isNamed ? view : "" });
}

/**
 * Let the address say what the page shows by now.
 * @param {Partial<Place>} change
 */
export function note(change) {
  history.replaceState(null, "", address({ ...here(), ...change }));
  shown = location.search;
}

/**
 * Go to a place without reloading the page, which would end uploads.
 * @param {string} to an address of this page
 */
export function go(to) {
  history.pushState(null, "", to);
  move();
}

function move() {
  shown = location.search;
  moved();
}

/**
 * Follow links within the page, and the browser's buttons.
 * @param {() => void} show
 */
export function follow(show) {
  moved = show;
  // A link to a part of the page, such as the one to its content, moves nowhere.
  addEventListener("popstate", () => location.search === shown || move());
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
