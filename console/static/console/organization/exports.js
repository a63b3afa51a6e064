// @ts-check
/** Exports of everything that the organization has here. */

import { call, get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { download } from "../lib/download.js";
import { bytes, moment } from "../lib/format.js";
import { attempt, onPress } from "../lib/forms.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/organization/exports";
const LOOK_MS = 2000;

/**
 * @typedef {object} Export
 * @property {string} id
 * @property {"queued" | "running" | "ready" | "failed"} state
 * @property {string} requested_by
 * @property {string} requested_at
 * @property {string | null} expires_at
 * @property {number} size_bytes
 * @property {string} failure
 * @property {string[]} missing
 */

let timer = 0;

/** @param {boolean} isAdmin */
export async function bindExports(isAdmin) {
  show(byId("exports"), isAdmin);
  if (!isAdmin) return;
  onPress(byId("export-new"), byId("exports"), async () => {
    await post(PATH);
    announce("The export is requested.");
    await showExports();
  });
  await attempt(byId("exports"), showExports);
}

async function showExports() {
  clearTimeout(timer);
  /** @type {{results: Export[]}} */
  const { results } = await get(PATH);
  const none = element("li", "There is none.");
  none.className = "muted";
  byId("export-list").replaceChildren(...(results.length ? results.map(rowOf) : [none]));
  const isUnderWay = results.some(({ state }) => state === "queued" || state === "running");
  /** @type {HTMLButtonElement} */ (byId("export-new")).disabled = isUnderWay;
  if (isUnderWay) timer = setTimeout(look, LOOK_MS);
}

function look() {
  // A page in the background shows its progress to no one.
  if (document.hidden) timer = setTimeout(look, LOOK_MS);
  else void attempt(byId("exports"), showExports);
}

/** @param {Export} row */
function rowOf(row) {
  const made = stamp("export-row");
  const when = secondsOf(row.requested_at);
  fill(made, { when: moment(when), state: row.state, about: aboutOf(row) });
  const isReady = row.state === "ready" && secondsOf(row.expires_at) > Date.now() / 1000;
  const save = within(made, "[data-action=download]");
  save.setAttribute("aria-label", `Download the export of ${moment(when)}`);
  show(save, isReady);
  onPress(save, byId("exports"), async () => {
    await download(`${PATH}/${row.id}/archive`, "application/zip", `organization-${row.requested_at.slice(0, 10)}.zip`);
  });
  const remove = within(made, "[data-action=remove]");
  remove.setAttribute("aria-label", `Delete the export of ${moment(when)}`);
  show(remove, row.state === "ready" || row.state === "failed");
  onPress(remove, byId("exports"), async () => {
    await confirm("Delete the export?", "Its archive can no longer be downloaded.", "Delete");
    await call("DELETE", `${PATH}/${row.id}`);
    announce("The export is deleted.");
    await showExports();
  });
  return made;
}

/** @param {Export} row */
function aboutOf({ state, requested_by: by, size_bytes: size, expires_at: ends, failure, missing }) {
  const said = [`Requested by ${by}`];
  if (state === "ready") said.push(bytes(size), `deleted ${moment(secondsOf(ends))}`);
  if (failure) said.push(failure);
  if (missing.length) said.push(`Not in it: ${missing.join(" ")}`);
  return said.join(" · ");
}

/** @param {string | null} text ISO 8601 */
function secondsOf(text) {
  return text ? Date.parse(text) / 1000 : 0;
}
