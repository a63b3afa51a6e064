// @ts-check
/** For operators of nodes: register them, see what they do and earn, and be paid. */

import { openPage } from "../frame/shell.js";
import { bindCopies } from "../lib/clipboard.js";
import { refuse } from "../lib/status.js";
import { bindEarnings, showEarnings } from "./earnings.js";
import { bindNodes, showNodes } from "./nodes.js";
import { bindPayouts, showPayouts } from "./payouts.js";

await openPage(async ({ roles }) => {
  const isAdmin = roles.includes("admin");
  if (!isAdmin && !roles.includes("operator")) {
    return refuse("Only admins and operators see the organization's nodes and what they earn.");
  }
  bindCopies();
  bindNodes(isAdmin);
  bindEarnings();
  bindPayouts(isAdmin);
  const nodes = await showNodes();
  await Promise.all([showEarnings(nodes), showPayouts()]);
});
