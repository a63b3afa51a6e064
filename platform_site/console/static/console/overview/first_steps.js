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
  const environment = who.environment.id;
  const lines = {
    "step-token": [
      `TOKEN=$(curl -s ${base}/v1/auth/login -H 'Content-Type: application/json' \\`,
      `  -d '{"email": "${who.email}", "password": "…", "environment": "${environment}"}' \\`,
      `  | python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')`,
    ],
    "step-sql": [
      `curl -s ${base}/v1/sql -H "Authorization: Bearer $TOKEN" \\`,
      `  -H 'Content-Type: application/json' -d '{"query": "SELECT 40 + 2 AS answer"}'`,
    ],
    "step-who": [`curl -s ${base}/v1/whoami -H "Authorization: Bearer $TOKEN"`],
  };
  for (const [id, text] of Object.entries(lines)) byId(id).textContent = text.join("\n");
  bindCopies();
  show(byId("steps"));
  /** @type {HTMLDetailsElement} */ (byId("steps-details")).open = isOpen;
}
