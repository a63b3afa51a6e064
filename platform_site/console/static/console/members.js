// @ts-check
/** Members and invitations: who belongs to the organization, who is asked to, and as what. */

import { byId, show } from "./dom.js";
import { bindInvitations, showInvitations } from "./invitations.js";
import { bindMembers, showMembers } from "./member_list.js";
import { openPage } from "./shell.js";

await openPage(async (who) => {
  const isAdmin = who.roles.includes("admin");
  const mayRead = isAdmin || who.roles.includes("operator");
  show(byId("members-closed"), !mayRead);
  for (const id of ["members", "invitations"]) show(byId(id), mayRead);
  if (mayRead) {
    bindMembers(who.user_id, isAdmin);
    bindInvitations(isAdmin);
    await Promise.all([showMembers(), showInvitations()]);
  }
});
