// @ts-check
/** The frame of the signed-in pages: who, where, sign out. */

import { callNothing, get, handle, list } from "../lib/api.js";
import { byId, element, fill, show } from "../lib/dom.js";
import { claimDrafts, forgetDrafts } from "../lib/drafts.js";
import { onClick } from "../lib/forms.js";
import { letLeave } from "../lib/leaving.js";
import { bindMenus } from "../lib/menu.js";
import { ACCOUNT, HOME, restrictedTo, signIn } from "../lib/navigation.js";
import { Problem, sentenceOf } from "../lib/problem.js";
import { broken, ready, tell } from "../lib/status.js";
import { forgetNamed, kindOf, switchTo } from "./environment.js";
import { findable, findMembers } from "./findable.js";
import { bindPalette } from "./palette.js";
import { stepUp } from "./stepup.js";
import { changeSession, listen, tellOthersOfSignOut } from "../lib/tabs.js";

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
  listen(forgetNamed);
  onClick(byId("sign-out"), signOut);
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
    claimDrafts(who);
    frame(who);
    return who;
  } catch (error) {
    if (restrictedTo(error) === location.pathname) return null;
    throw error;
  }
}

/** @param {Who} who */
function frame(who) {
  fill(document, { organization: who.organization, environment: who.environment.name, you: who.email });
  byId("inside").dataset.place = kindOf(who.environment);
  document.title = `${document.title} · ${who.environment.name}`;
  show(byId("unverified"), who.email_verified === false);
  for (const item of document.querySelectorAll("[data-roles]")) {
    const roles = /** @type {HTMLElement} */ (item).dataset.roles?.split(" ") ?? [];
    show(/** @type {HTMLElement} */ (item), roles.some((role) => who.roles.includes(role)));
  }
  byId("environments").replaceChildren(...who.environments.map((place) => choice(place, who)));
  show(byId("environment-menu"));
  bindMenus();
  for (const button of document.querySelectorAll("dialog [data-close]")) {
    button.addEventListener("click", () => button.closest("dialog")?.close());
  }
  for (const button of document.querySelectorAll("[data-presses]")) {
    const { presses = "" } = /** @type {HTMLElement} */ (button).dataset;
    button.addEventListener("click", () => byId(presses).click());
  }
  const seesMembers = !who.roles.every((role) => role === "reader");
  bindPalette(commandsOf(who), () => findable({ environment: who.environment.id, seesMembers }), findMembers);
}

/**
 * Return what the palette offers in addition to the pages.
 * @param {Who} who
 */
function commandsOf(who) {
  const others = who.environments.filter((place) => place.id !== who.environment.id);
  return [
    ...others.map((place) => ({ kind: "Environment", name: `Switch to ${place.name}`, run: () => void switchTo(place) })),
    { kind: "Action", name: "Change between dark and light", run: () => byId("theme").click() },
    { kind: "Action", name: "Open the API's documentation", run: () => location.assign("/v1/docs") },
    { kind: "Action", name: "Sign out", run: () => void signOut() },
  ];
}

/**
 * @param {Place} place
 * @param {Who} who
 */
function choice(place, who) {
  const button = element("button", place.name);
  button.setAttribute("type", "button");
  button.className = "place";
  if (place.id === who.environment.id) button.setAttribute("aria-current", "true");
  onClick(button, () => switchTo(place));
  const item = element("li");
  item.dataset.place = kindOf(place);
  item.append(button);
  return item;
}

/** End the session, and leave for the sign-in. */
export async function signOut() {
  // Any call may be the first to notice it, this one or one in progress.
  handle({ signedOut: leave });
  try {
    await changeSession("/v1/auth/logout", {}, { title: "Sign out now?", action: "Sign out" });
    leave();
  } catch (error) {
    // Refused by the platform, it is over as well, the cookies are gone; unreached, refused by a proxy
    // ("unknown"), or kept from being heard, it is not.
    const isRefused = error instanceof Problem && error.status >= 400 && error.status < 500;
    if (isRefused && !["csrf_failed", "unknown"].includes(error.code)) {
      leave();
      return;
    }
    handle({ signedOut: signIn });
    tell(error);
  }
}

function leave() {
  callNothing();
  letLeave();
  forgetDrafts();
  tellOthersOfSignOut();
  location.assign(`${HOME}sign-in`);
}
