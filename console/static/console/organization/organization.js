// @ts-check
/** The organization: its name, its id, its limits. */

import { openPage } from "../frame/shell.js";
import { get } from "../lib/api.js";
import { byId, fill, show } from "../lib/dom.js";
import { onSubmit } from "../lib/forms.js";
import { dated } from "../lib/format.js";
import { announce } from "../lib/status.js";
import { StoredForm, textField } from "../lib/stored.js";
import { tellOthers } from "../lib/tabs.js";
import { bindDeletion } from "./deletion.js";
import { bindExports } from "./exports.js";

const PATH = "/v1/organization";

await openPage(async ({ roles, environments }) => {
  const isAdmin = roles.includes("admin");
  const organization = await get(PATH);
  fill(byId("facts"), {
    id: organization.id,
    created: dated(organization.created_at),
    environments: environments.length,
  });
  const form = /** @type {HTMLFormElement} */ (byId("rename-form"));
  const name = new StoredForm(form, { name: textField(byId("name")) });
  name.show(organization);
  /** @type {HTMLFieldSetElement} */ (byId("rename-fields")).disabled = !isAdmin;
  show(byId("rename-submit"), isAdmin);
  show(byId("rename-readonly"), !isAdmin);
  onSubmit(form, async () => {
    const renamed = await name.save("PATCH", PATH);
    if (!renamed) return announce("Nothing is changed.");
    name.show(renamed);
    fill(document, { organization: renamed.name });
    announce("The organization is renamed.");
    tellOthers();
  });
  await bindExports(isAdmin);
  bindDeletion(organization, isAdmin);
});
