// @ts-check
/** The greeting of a new organization: what its admin does first, ticked off by what there is. */

import { get } from "../lib/api.js";
import { byId, show, within } from "../lib/dom.js";
import { optional } from "../lib/optional.js";

/** @typedef {import("../frame/shell.js").Who} Who */

/** In this browser, of the user: it outlasts the session, and no colleague's is dismissed by it. */
const DISMISSED = "zonal-greeting-dismissed:";
const LEAVING_MS = 500;

/**
 * Return whether each step is done, by its element; null for one of which that is not known now.
 * Nothing where the greeting is not for this user, or was dismissed.
 * @param {Who} who
 * @param {{tables: number | null, objects: number | null} | null} held by the environment
 * @returns {Promise<Record<string, boolean | null>>}
 */
export async function readSteps(who, held) {
  if (!who.roles.includes("admin") || localStorage.getItem(DISMISSED + who.user_id)) return {};
  const keys = await optional(get("/v1/api-keys?page_size=200"));
  const isAny = (/** @type {number | null | undefined} */ count) => (count === null || count === undefined ? null : count > 0);
  return {
    "start-table": isAny(held?.tables),
    "start-file": isAny(held?.objects),
    "start-key": keys && keys.results.some((/** @type {{state: string}} */ { state }) => state === "active"),
  };
}

/**
 * Greet the user, unless everything is done.
 * @param {Who} who
 * @param {Record<string, boolean | null>} steps
 */
export function greet(who, steps) {
  const shown = Object.entries(steps).filter(([id]) => document.getElementById(id));
  for (const [id, isDone] of shown) show(within(byId(id), "[data-done]"), isDone === true);
  show(byId("greeting"), shown.some(([, isDone]) => isDone === false));
  byId("greeting-dismiss").addEventListener("click", () => {
    localStorage.setItem(DISMISSED + who.user_id, "1");
    // Its place stays for a moment, so that the second press of a double press meets nothing else.
    byId("greeting").classList.add("leaving");
    setTimeout(() => show(byId("greeting"), false), LEAVING_MS);
    byId("main").focus();
  });
}
