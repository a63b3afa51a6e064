// @ts-check
/** Linked accounts: the accounts at identity providers that sign one in. */

import { call, list, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { isAtHome, linkWith, providers, takePending, takeReturn } from "../entrance/external.js";
import { attempt, onPress } from "../lib/forms.js";
import { day } from "../lib/format.js";
import { openPage } from "../frame/shell.js";
import { announce, ready } from "../lib/status.js";

/**
 * @typedef {object} Identity
 * @property {string} id
 * @property {string} title of the provider
 * @property {string} email
 * @property {string} username
 * @property {number} created_at
 * @property {number | null} last_used_at
 */

const PATH = "/v1/auth/identities";

const back = takeReturn();
await openPage(async () => {
  await Promise.all([showIdentities(), offerProviders()]);
  ready();
  await attempt(byId("identities"), finish);
});

/** Finish what the page was opened for: a link that comes back, or one that waited for a sign-in. */
async function finish() {
  const pending = takePending();
  if (back) {
    await back.exchange();
    await done(`${back.title} is linked.`);
  }
  if (pending) {
    const { provider, title, link_token } = pending;
    await post(`/v1/auth/oauth/${provider}/link`, { link_token });
    await done(`${title} is linked.`);
  }
}

/** @param {string} text */
async function done(text) {
  await showIdentities();
  announce(text);
}

async function showIdentities() {
  const rows = await list(PATH);
  const none = element("li", "There are none.");
  none.className = "muted";
  byId("identity-list").replaceChildren(...(rows.length ? rows.map(rowOf) : [none]));
}

/** @param {Identity} identity */
function rowOf(identity) {
  const row = stamp("identity-row");
  const account = identity.email || identity.username;
  const used = identity.last_used_at ? `last used ${day(identity.last_used_at)}` : "not used yet";
  const about = [account, `linked ${day(identity.created_at)}`, used];
  fill(row, { name: identity.title, about: about.filter(Boolean).join(" · ") });
  const button = within(row, "[data-action=unlink]");
  button.setAttribute("aria-label", `Unlink: ${identity.title} ${account}`.trim());
  onPress(button, byId("identities"), async () => {
    await confirm(
      `Unlink ${identity.title}?`,
      "This account can no longer sign you in, and roles that come of it end.",
      "Unlink",
    );
    await call("DELETE", `${PATH}/${identity.id}`);
    await done(`${identity.title} is unlinked.`);
  });
  return row;
}

async function offerProviders() {
  const offered = await providers();
  byId("link-choices").replaceChildren(
    ...offered.filter(isAtHome).map((provider) => {
      const button = element("button", `Link ${provider.title}`);
      button.setAttribute("type", "button");
      onPress(button, byId("identities"), () => linkWith(provider));
      const item = element("li");
      item.append(button);
      return item;
    }),
  );
  const away = offered.find((provider) => !isAtHome(provider));
  show(byId("link-part"), offered.length > 0);
  show(byId("link-elsewhere"), away !== undefined);
  if (away) {
    const there = new URL(location.pathname, away.start_url).href;
    const anchor = /** @type {HTMLAnchorElement} */ (within(byId("link-elsewhere"), "a"));
    anchor.href = there;
    anchor.textContent = there;
  }
}
