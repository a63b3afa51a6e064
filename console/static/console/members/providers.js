// @ts-check
/** The sign-in providers, and which members use them. */

import { get } from "../lib/api.js";
import { byId, element, fill, stamp } from "../lib/dom.js";
import { count } from "../lib/format.js";

/** @typedef {{title: string, is_offered: boolean, member_count: number, members: string[]}} Provider */

export async function showProviders() {
  /** @type {{providers: Provider[]}} */
  const { providers } = await get("/v1/sign-in-providers");
  const none = element("li", "The platform offers none: members sign in with a password or a passkey.");
  none.className = "muted";
  byId("provider-list").replaceChildren(...(providers.length ? providers.map(rowOf) : [none]));
}

/** @param {Provider} provider */
function rowOf({ title, is_offered: isOffered, member_count: number, members }) {
  const row = stamp("provider-row");
  const more = number - members.length;
  const named = members.join(", ") + (more > 0 ? ` and ${more} more` : "");
  const about = number ? `${count(number, "member")}: ${named}` : "No member is linked to it.";
  fill(row, { title, state: isOffered ? "offered" : "switched off", about });
  return row;
}
