// @ts-check
/** The spend cap: what a month may cost. */

import { call, get } from "../lib/api.js";
import { byId, fill, show } from "../lib/dom.js";
import { forgetDraft } from "../lib/drafts.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { UCR_A_CENT, money } from "../lib/format.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/balance/spend-cap";

/**
 * @param {boolean} isAdmin
 * @param {string} currency
 */
export async function bindSpendCap(isAdmin, currency) {
  const section = byId("spend-cap");
  const form = /** @type {HTMLFormElement} */ (byId("spend-cap-form"));
  const field = /** @type {HTMLInputElement} */ (byId("cap"));
  const remove = /** @type {HTMLButtonElement} */ (byId("cap-remove"));
  fill(form, { currency });

  /** @param {{cap_cents: number | null, spent_ucr: number, is_reached: boolean}} found */
  const showCap = (found) => {
    const spent = money(found.spent_ucr, currency);
    const has = found.cap_cents !== null;
    const cap = has ? money((found.cap_cents ?? 0) * UCR_A_CENT, currency) : "";
    const reached = found.is_reached ? ": the cap is reached" : "";
    fill(section, { cap: has ? `${spent} of ${cap} are spent this month${reached}.` : `There is no cap. ${spent} are spent this month.` });
    field.value = has ? ((found.cap_cents ?? 0) / 100).toFixed(2) : "";
    show(remove, has);
  };

  showCap(await get(PATH));
  show(form, isAdmin);
  onSubmit(form, async () => {
    showCap(await call("PUT", PATH, { cap_cents: field.value === "" ? null : Math.round(Number(field.value) * 100) }));
    announce("The cap is set.");
  });
  onPress(remove, form, async () => {
    await call("DELETE", PATH);
    forgetDraft(form);
    showCap(await get(PATH));
    announce("The cap is removed.");
  });
}
