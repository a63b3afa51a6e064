// @ts-check
/** The organization: its name, its id, its limits. */

import { openPage } from "../frame/shell.js";
import { call, get } from "../lib/api.js";
import { byId, fill, show } from "../lib/dom.js";
import { onSubmit } from "../lib/forms.js";
import { dated } from "../lib/format.js";
import { announce } from "../lib/status.js";
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
  const name = /** @type {HTMLInputElement} */ (byId("name"));
  // A draft that was restored stays.
  name.value ||= organization.name;
  /** @type {HTMLFieldSetElement} */ (byId("rename-fields")).disabled = !isAdmin;
  show(byId("rename-submit"), isAdmin);
  show(byId("rename-readonly"), !isAdmin);
  onSubmit(/** @type {HTMLFormElement} */ (byId("rename-form")), async (values) => {
    const renamed = await call("PATCH", PATH, { name: values.name });
    name.value = renamed.name;
    fill(document, { organization: renamed.name });
    announce("The organization is renamed.");
    tellOthers();
  });
  await bindExports(isAdmin);
  bindDeletion(organization, isAdmin);
});
