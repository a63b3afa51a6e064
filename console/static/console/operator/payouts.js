// @ts-check
/** How the organization is paid, and its payouts. */

import { call, get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, show } from "../lib/dom.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { dated, moment, money } from "../lib/format.js";
import { optional } from "../lib/optional.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/cache/payouts";
const METHOD = "/v1/cache/payout-method";
const STATES = new Map([
  ["debited", "requested"],
  ["sent", "on its way"],
  ["confirmed", "paid"],
  ["reversed", "payable again"],
]);
let isAdmin = false;

/** @param {boolean} mayChange */
export function bindPayouts(mayChange) {
  isAdmin = mayChange;
  for (const id of ["method-change", "payout-request"]) show(byId(id), isAdmin);
  if (!isAdmin) return;
  const form = /** @type {HTMLFormElement} */ (byId("method-form"));
  onSubmit(form, async ({ kind, account }) => {
    await call("PUT", METHOD, { kind, details: { account } });
    form.reset();
    /** @type {HTMLDetailsElement} */ (byId("method-change")).open = false;
    await showMethod();
    announce("The payout method is set. All admins get a mail.");
  });
  onPress(byId("method-remove"), byId("method"), async () => {
    await confirm("Remove the payout method?", "Nothing can be paid out until there is another one.", "Remove");
    await call("DELETE", METHOD);
    await showMethod();
    announce("The payout method is removed.");
  });
  onPress(byId("payout-request"), byId("payouts"), async () => {
    await confirm("Pay out everything that is payable?", "It goes to your payout method. Until it is sent you can cancel it.", "Request the payout");
    await post(PATH);
    await showList();
    announce("The payout is requested.");
  });
}

export async function showPayouts() {
  await Promise.all([showMethod(), showList()]);
}

async function showMethod() {
  const method = await optional(get(METHOD));
  const rests = method && !method.is_usable ? ` It is used from ${moment(Date.parse(method.usable_from) / 1000)} on.` : "";
  byId("method-now").textContent = method ? `By ${method.kind} to ${method.account}, set ${dated(method.created_at)}.${rests}` : "None yet: set one to be paid.";
  show(byId("method-remove"), isAdmin && method !== null);
}

async function showList() {
  const { results } = await get(`${PATH}?page_size=50`);
  byId("payout-rows").replaceChildren(...results.map(rowOf));
  show(byId("payouts-table"), results.length > 0);
  show(byId("no-payouts"), results.length === 0);
}

/** @param {any} payout */
function rowOf(payout) {
  const row = element("tr");
  const amount = element("td", money(payout.amount_cents * 1e9, payout.currency));
  amount.className = "number";
  const state = STATES.get(payout.state) ?? payout.state;
  const actions = element("td");
  if (isAdmin && payout.state === "debited") {
    const cancel = element("button", "Cancel");
    cancel.setAttribute("type", "button");
    cancel.setAttribute("aria-label", `Cancel the payout of ${dated(payout.created_at)}`);
    onPress(cancel, byId("payouts"), async () => {
      await confirm("Cancel this payout?", "The amount is not sent. It is payable again, when you request another payout.", "Cancel the payout");
      await post(`${PATH}/${payout.id}/cancel`);
      await showList();
      announce("The payout is cancelled, and payable again.");
    });
    actions.append(cancel);
  }
  row.append(element("td", dated(payout.created_at)), amount, element("td", payout.failure ? `${state}: ${payout.failure}` : state), element("td", payout.reference), actions);
  return row;
}
