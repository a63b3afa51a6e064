// @ts-check
/** The frame of the signed-in pages: who, where, sign out. */

import { get, handle, list, post } from "./api.js";
import { byId, element, fill, show, within } from "./dom.js";
import { ACCOUNT, HOME, restrictedTo, signIn } from "./places.js";
import { Problem, sentenceOf } from "./problem.js";
import { broken, ready, tell } from "./status.js";
import { stepUp } from "./stepup.js";
import { listen, tellOthers } from "./tabs.js";

/**
 * @typedef {object} Who
 * @property {string} user_id
 * @property {string} email
 * @property {boolean | null} email_verified
 * @property {number} org_id
 * @property {string} organization
 * @property {{id: string, name: string}} environment
 * @property {string[]} roles
 * @property {number} aal
 * @property {Place[]} environments of the organization
 */
/** @typedef {{id: string, name: string, built_in: boolean}} Place */

/**
 * Fill the frame and the page, then show it; show what went wrong where that fails. A visitor who is
 * not signed in is sent to sign in. A session that has to set up a second factor or to give an
 * address first is sent to the page for that.
 * @param {(who: Who) => Promise<void>} showPage
 * @param {() => Promise<void>} [showRestricted] fills the page that restricted sessions are sent to
 */
export async function openPage(showPage, showRestricted) {
  const emailRequired = location.pathname === ACCOUNT ? null : () => location.replace(ACCOUNT);
  handle({ stepUp, signedOut: signIn, emailRequired });
  listen();
  byId("sign-out").addEventListener("click", signOut);
  try {
    const who = await enter();
    if (who) await showPage(who);
    else await showRestricted?.();
    ready();
  } catch (error) {
    const page = restrictedTo(error);
    if (page && page !== location.pathname) return location.replace(page);
    broken(sentenceOf(error));
    if (!(error instanceof Problem)) throw error;
  }
}

/**
 * Fill the frame; return the signed-in user, null for a session that is restricted to this page.
 * @returns {Promise<Who | null>}
 */
async function enter() {
  try {
    /** @type {Who} */
    const who = { ...(await get("/v1/whoami")), environments: await list("/v1/environments") };
    frame(who);
    // For the recovery page, which needs it without a sign-in. It is no secret.
    localStorage.setItem("zonal-organization", String(who.org_id));
    return who;
  } catch (error) {
    if (restrictedTo(error) === location.pathname) return null;
    throw error;
  }
}

/** @param {Who} who */
function frame(who) {
  fill(document, { organization: who.organization, environment: who.environment.name });
  show(byId("unverified"), who.email_verified === false);
  const menu = byId("environments");
  menu.replaceChildren(
    ...who.environments.map((place) => {
      const button = element("button", place.name);
      button.setAttribute("type", "button");
      if (place.id === who.environment.id) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => switchTo(place));
      const item = element("li");
      item.append(button);
      return item;
    }),
  );
  const details = /** @type {HTMLDetailsElement} */ (byId("environment-menu"));
  show(details);
  closeLikeAMenu(details);
}

/** @param {HTMLDetailsElement} details */
function closeLikeAMenu(details) {
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    within(details, "summary").focus();
  });
  details.addEventListener("focusout", (event) => {
    const to = event.relatedTarget;
    if (to instanceof Node && !details.contains(to)) details.open = false;
  });
  document.addEventListener("click", (event) => {
    if (event.target instanceof Node && !details.contains(event.target)) details.open = false;
  });
}

/** @param {Place} place */
async function switchTo(place) {
  try {
    await post("/v1/auth/switch", { environment: place.id });
  } catch (error) {
    tell(error);
    return;
  }
  tellOthers();
  location.reload();
}

async function signOut() {
  // Whatever call is the first to hear of it, this one or one that was under way: it is over.
  handle({ signedOut: leave });
  try {
    await post("/v1/auth/logout");
    leave();
  } catch (error) {
    // Refused, it is over as well, the cookies are gone; unreached, or kept from being heard, it is not.
    if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.code !== "csrf_failed") {
      leave();
      return;
    }
    handle({ signedOut: signIn });
    tell(error);
  }
}

function leave() {
  tellOthers();
  location.assign(`${HOME}sign-in`);
}
