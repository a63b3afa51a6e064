// @ts-check
/** Buttons for the identity providers, on the pages for those who are not signed in. */

import { byId, element, show } from "../lib/dom.js";
import { providers, signInWith } from "./external.js";
import { onPress, showProblem } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";

/**
 * Offer what is configured; nothing is shown where nothing is, and a problem where that is unknown.
 * @param {HTMLElement} root where a refusal is shown
 * @param {() => Parameters<typeof signInWith>[1]} [invited] called when a provider is chosen
 */
export async function offerProviders(root, invited = () => ({})) {
  const offered = await providers().catch((error) => {
    if (!(error instanceof Problem)) throw error;
    showProblem(root, error);
    return [];
  });
  byId("provider-choices").replaceChildren(
    ...offered.map((provider) => {
      const button = element("button", `Continue with ${provider.title}`);
      button.setAttribute("type", "button");
      button.className = "wide";
      onPress(button, root, () => signInWith(provider, invited()));
      const item = element("li");
      item.append(button);
      return item;
    }),
  );
  show(byId("provider-part"), offered.length > 0);
}
