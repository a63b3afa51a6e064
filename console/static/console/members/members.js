// @ts-check
/** Members and invitations: who belongs to the organization, who is asked to, and as what. */

import { byId, show } from "../lib/dom.js";
import { onPress } from "../lib/forms.js";
import { announce } from "../lib/status.js";
import { bindInvitations, showInvitations } from "./invitations.js";
import { bindMembers, showMembers } from "./member_list.js";
import { bindDomains, showDomains } from "./domains.js";
import { showProviders } from "./providers.js";
import { bindReset } from "./reset.js";
import { openPage } from "../frame/shell.js";

await openPage(async (who) => {
  const isAdmin = who.roles.includes("admin");
  const mayRead = isAdmin || who.roles.includes("operator");
  show(byId("members-closed"), !mayRead);
  for (const id of ["members", "invitations", "providers"]) show(byId(id), mayRead);
  if (mayRead) {
    onPress(byId("members-refresh"), byId("members"), async () => {
      await Promise.all([showMembers(), showInvitations()]);
      announce("The lists are up to date.");
    });
    bindMembers(who.user_id, isAdmin);
    bindInvitations(isAdmin);
    bindDomains(isAdmin);
    bindReset();
    await Promise.all([showMembers(), showInvitations(), showDomains(), showProviders()]);
  }
});
