// @ts-check
/** Buying credits on the payment provider's page. */

import { post } from "../lib/api.js";
import { byId, fill, show } from "../lib/dom.js";
import { onSubmit } from "../lib/forms.js";
import { UCR_A_CENT, credits } from "../lib/format.js";

/** Without a payment provider a sentence is in the form's place. */
export function hasTopUps() {
  return document.getElementById("top-up-form") !== null;
}

/** @param {boolean} isAdmin */
export function bindTopUp(isAdmin) {
  show(byId("top-up"), isAdmin);
  if (!isAdmin || !hasTopUps()) return;
  const amount = /** @type {HTMLInputElement} */ (byId("amount"));
  const form = /** @type {HTMLFormElement} */ (byId("top-up-form"));
  const worth = () => fill(form, { worth: amount.value ? `${credits(Math.round(Number(amount.value) * 100) * UCR_A_CENT)} credits` : "" });
  amount.addEventListener("input", worth);
  onSubmit(form, async () => {
    const { url } = await post("/v1/balance/top-ups", { amount_cents: Math.round(Number(amount.value) * 100) });
    const page = new URL(url);
    if (page.protocol === "https:" || page.hostname === "localhost" || page.hostname === "127.0.0.1") location.assign(page);
    // The form stays busy until the other page is there: a second press would open a second purchase.
    await new Promise((done) => setTimeout(done, 10_000));
  });
  worth();
}
