// @ts-check
/** Objects: buckets, their folders and objects, their settings; origins and access keys. */

import { ofEnvironment } from "../frame/environment.js";
import { openPage } from "../frame/shell.js";
import { byId, fill, show, within } from "../lib/dom.js";
import { attempt } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { bindBuckets, showBuckets } from "./buckets.js";
import { bindDetails, closeDetails } from "./details.js";
import { bindFiles, showFiles } from "./files.js";
import { bindKeys, showKeys } from "./keys.js";
import { bindOrigins, showOrigins } from "./origins.js";
import { follow, here } from "./place.js";
import { bindSettings, showSettings } from "./settings.js";
import { bindUploads } from "./uploads.js";

/** By view: what fills it. Its section has its name, and shows a failure. */
const VIEWS = { buckets: showBuckets, files: showFiles, settings: showSettings, origins: showOrigins, keys: showKeys };

let isAdmin = false;
let environment = "";
// An answer that came too late must not change what is shown by now.
let moves = 0;

await openPage(ofEnvironment(async (who) => {
  isAdmin = who.roles.includes("admin");
  environment = who.environment.name;
  const mayWrite = isAdmin || who.roles.includes("operator");
  bindBuckets(mayWrite);
  bindFiles(mayWrite);
  bindDetails(mayWrite);
  bindSettings(isAdmin);
  bindOrigins(isAdmin);
  bindKeys(isAdmin);
  bindUploads();
  follow(() => void move());
  await showPlace();
}));

/** Show another place; the focus goes there if what had it is gone. */
async function move() {
  closeDetails();
  await showPlace();
  const { activeElement } = document;
  if (activeElement !== document.body && activeElement?.checkVisibility()) return;
  const heading = within(document, "section[data-view]:not([hidden]) h2");
  heading.tabIndex = -1;
  heading.focus();
}

async function showPlace() {
  const place = here();
  moves += 1;
  const mine = moves;
  showSections(place.view);
  const current = place.bucket ? "buckets" : place.view;
  for (const link of byId("objects-views").querySelectorAll("a")) {
    if (link.dataset.view === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  show(byId("away"), false);
  await attempt(byId(place.view), async () => {
    try {
      await VIEWS[place.view]();
    } catch (error) {
      if (mine === moves) showMissing(error, place.bucket);
    }
  });
}

/**
 * Say that the cache, or the bucket, is not there. Raises any other error.
 * @param {unknown} error
 * @param {string} bucket
 */
function showMissing(error, bucket) {
  const code = error instanceof Problem ? error.code : "";
  if (code === "cache_unavailable") return show(byId("away"));
  if (code !== "bucket_not_found") throw error;
  fill(byId("gone"), { bucket, place: environment });
  showSections("gone");
}

/** @param {string} view */
function showSections(view) {
  for (const section of document.querySelectorAll("section[data-view]")) {
    const isHere = /** @type {HTMLElement} */ (section).dataset.view === view;
    show(/** @type {HTMLElement} */ (section), isHere && (isAdmin || !["bucket-end", "link-end"].includes(section.id)));
  }
}
