// @ts-check
/** Buttons for the identity providers, on the pages for those who are not signed in. */

import { byId, element, show } from "../lib/dom.js";
import { providers, signInWith } from "./external.js";
import { onPress } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";

/**
 * Offer what is configured; nothing is shown where nothing is.
 * @param {HTMLElement} root where a refusal is shown
 */
export async function offerProviders(root) {
  const offered = await providers().catch((error) => {
    if (error instanceof Problem) return [];
    throw error;
  });
  byId("provider-choices").replaceChildren(
    ...offered.map((provider) => {
      const button = element("button", `Continue with ${provider.title}`);
      button.setAttribute("type", "button");
      button.className = "wide";
      onPress(button, root, () => signInWith(provider));
      const item = element("li");
      item.append(button);
      return item;
    }),
  );
  show(byId("provider-part"), offered.length > 0);
}
