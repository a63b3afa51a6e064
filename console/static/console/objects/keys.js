// @ts-check
/** Access keys for S3 clients; a secret is shown once. */

import { call, get, post } from "../lib/api.js";
import { copy } from "../lib/clipboard.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { dated } from "../lib/format.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/cache/access-keys";

let mayChange = false;
let secret = "";

/** @param {boolean} isAdmin */
export function bindKeys(isAdmin) {
  mayChange = isAdmin;
  const dialog = /** @type {HTMLDialogElement} */ (byId("key-dialog"));
  const form = /** @type {HTMLFormElement} */ (byId("key-form"));
  byId("key-new").addEventListener("click", () => {
    form.reset();
    restoreDraft(form);
    dialog.showModal();
  });
  onSubmit(form, async ({ label, access }) => {
    const key = await post(PATH, { label, access });
    dialog.close();
    secret = key.secret_access_key;
    fill(byId("key-made"), { id: key.access_key_id, secret, endpoint: key.endpoint });
    show(byId("key-made"));
    byId("key-made-title").focus();
    await showKeys();
  });
  byId("key-copy").addEventListener("click", () => copy(secret, "The secret is"));
  byId("key-kept").addEventListener("click", () => {
    secret = "";
    fill(byId("key-made"), { id: "", secret: "", endpoint: "" });
    show(byId("key-made"), false);
  });
}

export async function showKeys() {
  const { results } = await get(PATH);
  const list = byId("key-list");
  list.replaceChildren(...results.map(row));
  if (!results.length) list.append(element("li", "There are none."));
}

/** @param {any} key */
function row(key) {
  const made = stamp("key-row");
  const used = key.last_used_at ? `last used ${dated(key.last_used_at)}` : "never used";
  const can = key.access === "read" ? "reads" : "reads and writes";
  const by = key.created_by && `by ${key.created_by}`;
  fill(made, { id: key.access_key_id, about: [key.label, can, by, used].filter(Boolean).join(", ") });
  show(within(made, ".actions"), mayChange);
  const button = within(made, "button");
  button.setAttribute("aria-label", `Revoke ${key.access_key_id}`);
  onPress(button, byId("keys"), async () => {
    await confirm(`Revoke ${key.access_key_id}?`, "Clients that use it are refused immediately.", "Revoke");
    await call("DELETE", `${PATH}/${key.access_key_id}`);
    announce(`${key.access_key_id} is revoked.`);
    await showKeys();
  });
  return made;
}
