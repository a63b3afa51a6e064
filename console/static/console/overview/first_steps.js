// @ts-check
/** First steps: lines to paste into a terminal, with this installation's addresses. */

import { byId, show } from "../lib/dom.js";
import { bindCopies } from "../lib/clipboard.js";

/**
 * @param {import("../frame/shell.js").Who} who
 * @param {boolean} isOpen
 */
export function showSteps(who, isOpen) {
  const base = location.origin;
  const lines = {
    "step-token": ["TOKEN='zk_…'"],
    "step-login": [`zonal login --url ${base} --environment ${who.environment.id}`, "zonal sql -c 'SELECT 40 + 2 AS answer'"],
    "step-sql": [
      `curl -s ${base}/v1/sql -H "Authorization: Bearer $ZONAL_TOKEN" \\`,
      `  -H 'Content-Type: application/json' -d '{"query": "SELECT 40 + 2 AS answer"}'`,
    ],
    "step-who": [`curl -s ${base}/v1/whoami -H "Authorization: Bearer $ZONAL_TOKEN"`],
  };
  for (const [id, text] of Object.entries(lines)) byId(id).textContent = text.join("\n");
  bindCopies();
  show(byId("steps"));
  /** @type {HTMLDetailsElement} */ (byId("steps-details")).open = isOpen;
}
