// @ts-check
/** Home: who and where one is, the environments, a first query. */

import { get } from "./api.js";
import { byId, element, fill, show } from "./dom.js";
import { moment } from "./format.js";
import { openPage } from "./shell.js";
import { bindSql } from "./sql.js";

await openPage(async (who) => {
  fill(byId("who"), {
    email: who.email,
    organization: who.organization,
    org_id: who.org_id,
    environment: who.environment.name,
    roles: who.roles.join(", "),
    assurance: who.aal > 1 ? "Password and second factor" : "First factor only",
  });
  showEnvironments(who);
  await showWhatIsDue();
  bindSql(who.environment.name);
});

/** @param {import("./shell.js").Who} who */
function showEnvironments({ environments, environment: current }) {
  byId("environment-rows").replaceChildren(
    ...environments.map((place) => {
      const row = element("tr");
      const name = element("th", place.name);
      name.setAttribute("scope", "row");
      const id = element("td");
      id.append(element("code", place.id));
      row.append(name, id, element("td", place.built_in ? "built in" : "your own"));
      row.append(element("td", place.id === current.id ? "in use" : ""));
      return row;
    }),
  );
}

/** Remind of a second factor: required ones with their deadline. */
async function showWhatIsDue() {
  const state = await get("/v1/auth/2fa/compliance");
  const isMissing = state.enabled_methods.length === 0;
  if (state.compliant && !isMissing) return;
  const required = state.grace_ends_at
    ? `Your organization requires a second factor from ${moment(state.grace_ends_at)} on.`
    : "Your organization requires a second factor.";
  const text = state.compliant ? "A password alone can be stolen. Add a second factor." : required;
  fill(byId("due"), { due: text });
  show(byId("due"));
}
