// @ts-check
/** The organization's deletion: requested with its name, cancelled by any admin until it is due. */

import { call, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show } from "../lib/dom.js";
import { moment } from "../lib/format.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/organization/deletion";

/** @typedef {{name: string, deletion_due_at: string | null, deletion_requested_by: string}} Organization */

let isAdmin = false;

/**
 * @param {Organization} organization
 * @param {boolean} mayDelete
 */
export function bindDeletion(organization, mayDelete) {
  isAdmin = mayDelete;
  const form = /** @type {HTMLFormElement} */ (byId("deletion-form"));
  onSubmit(form, async ({ name }) => {
    await confirm("Delete the organization?", "All of its data is deleted after the delay. Every admin gets a mail.", "Delete");
    showDeletion(await post(PATH, { name }));
    form.reset();
    announce("The deletion is requested.");
    byId("deletion-due").scrollIntoView({ block: "nearest" });
  });
  onPress(byId("deletion-cancel"), byId("deletion-due"), async () => {
    showDeletion(await call("DELETE", PATH));
    announce("The organization is kept.");
  });
  showDeletion(organization);
}

/** @param {Organization} organization */
function showDeletion({ deletion_due_at: due, deletion_requested_by: by }) {
  if (due) fill(byId("deletion-due"), { by: by || "An admin", due: moment(Date.parse(due) / 1000) });
  show(byId("deletion-due"), due !== null);
  show(byId("deletion-cancel"), isAdmin);
  show(byId("deletion"), isAdmin && due === null);
}
