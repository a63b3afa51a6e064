// @ts-check
/** E-mail domains whose users join by signing in: claimed, verified by a DNS record, removed. */

import { call, list, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/domains";

let mayChange = false;

/** @param {boolean} isAdmin */
export function bindDomains(isAdmin) {
  mayChange = isAdmin;
  show(byId("domains"));
  show(byId("domain-form"), isAdmin);
  const form = /** @type {HTMLFormElement} */ (byId("domain-form"));
  onSubmit(form, async ({ domain, role }) => {
    const claimed = await post(PATH, { domain, role });
    form.reset();
    await showDomains();
    announce(`${claimed.domain} is added: create its DNS record, then press Verify.`);
  });
}

export async function showDomains() {
  const domains = await list(PATH);
  const none = element("li", "There are none.");
  byId("domain-list").replaceChildren(...(domains.length ? domains.map(rowOf) : [none]));
}

/** @param {any} domain */
function rowOf({ id, domain, role, status, record }) {
  const row = stamp("domain-row");
  const isVerified = status === "verified";
  const about = isVerified
    ? `Users join as ${role}s. Keep its DNS record.`
    : `Create a ${record.type} record ${record.name} with the value ${record.value}, then press Verify.`;
  fill(row, { domain, status, about });
  show(within(row, ".actions"), mayChange);
  const [verify, remove] = ["verify", "remove"].map((name) => within(row, `[data-action="${name}"]`));
  verify.setAttribute("aria-label", `Verify ${domain}`);
  remove.setAttribute("aria-label", `Remove ${domain}`);
  show(verify, !isVerified);
  onPress(verify, byId("domains"), async () => {
    await post(`${PATH}/${id}/verify`);
    await showDomains();
    announce(`${domain} is verified.`);
  });
  onPress(remove, byId("domains"), async () => {
    await confirm(`Remove ${domain}?`, "New members can no longer join by it. Members who have joined stay.", "Remove");
    await call("DELETE", `${PATH}/${id}`);
    await showDomains();
    announce(`${domain} is removed.`);
  });
  return row;
}
