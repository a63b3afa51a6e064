// @ts-check
/** PostgreSQL's extensions in an environment's database: installed and removed. */

import { call, get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { attempt, clearProblem, onPress } from "../lib/forms.js";
import { announce } from "../lib/status.js";

let path = "";
let mayChange = false;

/**
 * Show the extensions of an environment, in a dialog.
 * @param {{id: string, name: string}} place
 * @param {boolean} isAdmin
 */
export async function openExtensions(place, isAdmin) {
  path = `/v1/environments/${encodeURIComponent(place.id)}/extensions`;
  mayChange = isAdmin;
  const dialog = /** @type {HTMLDialogElement} */ (byId("extensions-dialog"));
  fill(dialog, { title: `Extensions of ${place.name}` });
  byId("extension-list").replaceChildren(element("li", "Loading…"));
  clearProblem(dialog);
  dialog.showModal();
  await attempt(dialog, showExtensions);
}

async function showExtensions() {
  const asked = path;
  const { results } = await get(asked);
  // The dialog may show another environment by now.
  if (asked === path) byId("extension-list").replaceChildren(...results.map(rowOf));
}

/** @param {any} extension */
function rowOf({ name, version, is_installed, comment }) {
  const row = stamp("extension-row");
  fill(row, { name, version, about: comment ?? "" });
  const [install, remove] = ["install", "remove"].map((each) => within(row, `[data-action="${each}"]`));
  install.setAttribute("aria-label", `Install ${name}`);
  remove.setAttribute("aria-label", `Remove ${name}`);
  show(install, mayChange && !is_installed);
  show(remove, mayChange && is_installed);
  show(within(row, ".badge"), is_installed);
  const dialog = byId("extensions-dialog");
  onPress(install, dialog, async () => {
    await post(path, { name });
    await showExtensions();
    announce(`${name} is installed.`);
  });
  onPress(remove, dialog, async () => {
    await confirm(`Remove ${name}?`, "Queries that use its functions and types fail then. While a table, an index or a view needs one of them, it is refused.", "Remove");
    await call("DELETE", `${path}/${encodeURIComponent(name)}`);
    await showExtensions();
    announce(`${name} is removed.`);
  });
  return row;
}
