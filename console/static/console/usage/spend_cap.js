// @ts-check
/** The spend cap: what a month may cost. */

import { call, get } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show } from "../lib/dom.js";
import { forgetDraft } from "../lib/drafts.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { UCR_A_CENT, money } from "../lib/format.js";
import { announce } from "../lib/status.js";
import { StoredForm } from "../lib/stored.js";

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
  const cap = new StoredForm(form, {
    cap_cents: {
      read: () => (field.value === "" ? null : Math.round(Number(field.value) * 100)),
      write: (cents) => (field.value = cents === null ? "" : (cents / 100).toFixed(2)),
    },
  });

  /** @param {{cap_cents: number | null, spent_ucr: number, is_reached: boolean}} found */
  const showCap = (found) => {
    const spent = money(found.spent_ucr, currency);
    const has = found.cap_cents !== null;
    const most = has ? money((found.cap_cents ?? 0) * UCR_A_CENT, currency) : "";
    const reached = found.is_reached ? ": the cap is reached" : "";
    fill(section, { cap: has ? `${spent} of ${most} are spent this month${reached}.` : `There is no cap. ${spent} are spent this month.` });
    cap.show(found);
    show(remove, has);
  };

  showCap(await get(PATH));
  show(form, isAdmin);
  onSubmit(form, async () => {
    const saved = await cap.save("PUT", PATH);
    if (saved) showCap(saved);
    announce(saved ? "The cap is set." : "Nothing is changed.");
  });
  onPress(remove, form, async () => {
    await confirm("Remove the cap?", "Nothing limits then what a month costs.", "Remove");
    await call("DELETE", PATH);
    forgetDraft(form);
    showCap(await get(PATH));
    announce("The cap is removed.");
  });
}
