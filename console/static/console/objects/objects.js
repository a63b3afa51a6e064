// @ts-check
/** Objects: buckets, their folders and objects, their settings; origins and access keys. */

import { openPage } from "../frame/shell.js";
import { byId, show } from "../lib/dom.js";
import { attempt } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { bindBuckets, showBuckets } from "./buckets.js";
import { bindDetails } from "./details.js";
import { bindFiles, showFiles } from "./files.js";
import { bindKeys, showKeys } from "./keys.js";
import { bindOrigins, showOrigins } from "./origins.js";
import { follow, here } from "./place.js";
import { bindSettings, showSettings } from "./settings.js";
import { bindUploads } from "./uploads.js";

/** By view: the section that shows a failure, and what fills it. */
const VIEWS = {
  buckets: { section: "buckets", fill: showBuckets },
  files: { section: "files", fill: showFiles },
  settings: { section: "settings", fill: showSettings },
  origins: { section: "origins", fill: showOrigins },
  keys: { section: "keys", fill: showKeys },
};

await openPage(async ({ roles }) => {
  const isAdmin = roles.includes("admin");
  const mayWrite = isAdmin || roles.includes("operator");
  bindBuckets(mayWrite);
  bindFiles(mayWrite);
  bindDetails();
  bindSettings(isAdmin);
  bindOrigins(isAdmin);
  bindKeys(isAdmin);
  bindUploads();
  const turn = () => showPlace(isAdmin);
  follow(() => void turn());
  await turn();
});

/** @param {boolean} isAdmin */
async function showPlace(isAdmin) {
  const place = here();
  for (const section of document.querySelectorAll("section[data-view]")) {
    const isHere = /** @type {HTMLElement} */ (section).dataset.view === place.view;
    show(/** @type {HTMLElement} */ (section), isHere && (isAdmin || section.id !== "bucket-end"));
  }
  const current = place.bucket ? "buckets" : place.view;
  for (const link of byId("objects-views").querySelectorAll("a")) {
    if (link.dataset.view === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const { section, fill } = VIEWS[place.view];
  show(byId("away"), false);
  await attempt(byId(section), () => whileThere(fill));
}

/**
 * Run an action that needs the cache; report if the cache is unavailable.
 * @param {() => Promise<void>} action
 */
async function whileThere(action) {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "cache_unavailable") throw error;
    show(byId("away"));
  }
}
