// @ts-check
/**
 * The environment that a page shows, which its address may name: `?environment=ID`. Opened in another
 * one, the page asks instead of showing what has the same name there. A page of an environment's data
 * opens by, and writes its state by,
 *
 *     await openPage(ofEnvironment(async (who) => …));
 *     history.replaceState(null, "", linkHere({ schema, table }));
 */

import { byId, fill, show, stamp } from "../lib/dom.js";
import { onClick } from "../lib/forms.js";
import { showOnly, tell } from "../lib/status.js";
import { changeSession, tellOthers } from "../lib/tabs.js";

/** @typedef {import("./shell.js").Who} Who */
/** @typedef {import("./shell.js").Place} Place */

const NAME = "environment";
/** The id of the environment that the page shows the data of, '' on pages that show none. */
let shown = "";

/**
 * Return the address of a state of this page, for the history and for links: the query, and the
 * environment that is shown. What is empty is left out.
 * @param {Record<string, string>} query of names and states, never of secrets
 * @returns {string} from `?` on
 */
export function linkHere(query) {
  const filled = Object.entries({ ...query, [NAME]: shown }).filter(([, value]) => value !== "");
  return `?${new URLSearchParams(filled)}`;
}

/**
 * Return what fills a page of an environment's data. Where the address names another environment, it
 * asks whether to switch, and shows nothing else.
 * @param {(who: Who) => Promise<void>} showPage
 * @returns {(who: Who) => Promise<void>}
 */
export function ofEnvironment(showPage) {
  return async (who) => {
    shown = who.environment.id;
    const named = new URLSearchParams(location.search).get(NAME) ?? shown;
    if (named === shown) await showPage(who);
    else ask(who, named);
  };
}

/**
 * @param {Who} who
 * @param {string} named
 */
function ask(who, named) {
  const place = who.environments.find(({ id }) => id === named);
  const part = stamp("other-environment");
  byId("main").append(part);
  fill(part, place ? {
    title: `This link leads to ${place.name}`,
    text: `You are in ${who.environment.name}. Switching changes the environment in all your tabs.`,
  } : {
    title: "The environment of this link does not exist",
    text: `${who.organization} has no environment ${named}. It may have been deleted.`,
  });
  const to = byId("elsewhere-switch");
  const stay = byId("elsewhere-stay");
  to.textContent = `Switch to ${place?.name}`;
  show(to, Boolean(place));
  onClick(to, () => (place ? switchTo(place) : undefined));
  stay.textContent = `Stay in ${who.environment.name}`;
  onClick(stay, () => {
    forgetNamed();
    location.reload();
  });
  showOnly(part);
}

/**
 * Continue in another environment, in every tab.
 * @param {Place} place
 */
export async function switchTo(place) {
  try {
    const question = { title: `Switch to ${place.name} now?`, action: "Switch" };
    await changeSession("/v1/auth/switch", { environment: place.id }, question);
  } catch (error) {
    tell(error);
    return;
  }
  tellOthers();
  if (new URLSearchParams(location.search).get(NAME) !== place.id) forgetNamed();
  location.reload();
}

/** Let the address name no environment: the page goes on in the one that the user chose. */
export function forgetNamed() {
  if (!shown) return;
  const query = new URLSearchParams(location.search);
  query.delete(NAME);
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
}

/**
 * Return what an environment's colour depends on.
 * @param {{id: string}} place
 */
export function kindOf({ id }) {
  return id === "live" || id === "sandbox" ? id : "custom";
}
