// @ts-check
/** The organization's nodes: registering one, its state, its traffic, what audits found. */

import { call, get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { attempt, onPress, onSubmit } from "../lib/forms.js";
import { bytes, dated, moment, number, share } from "../lib/format.js";
import { optional } from "../lib/optional.js";
import { announce } from "../lib/status.js";

const GIB = 2 ** 30;
const MEANING = new Map([
  ["pending", "waits for the approval of the platform's staff"],
  ["active", "serves"],
  ["draining", "is emptied: it gets nothing new"],
  ["quarantined", "gets no traffic, as wrong bytes came from it"],
  ["removed", "was removed"],
]);
let isAdmin = false;

/** @param {boolean} mayChange */
export function bindNodes(mayChange) {
  isAdmin = mayChange;
  show(byId("register"), isAdmin);
  const form = /** @type {HTMLFormElement} */ (byId("register-form"));
  onSubmit(form, async ({ endpoint, region, capacity_bytes: gib }) => {
    const capacity_bytes = Math.round(Number(gib) * GIB);
    const node = await post("/v1/cache/nodes/register", { endpoint, region, capacity_bytes });
    form.reset();
    /** @type {HTMLDetailsElement} */ (byId("register")).open = false;
    showCommand(node, gib);
    await showNodes();
  });
  byId("command-done").addEventListener("click", () => {
    show(byId("command"), false);
    byId("command-text").textContent = "";
  });
}

/**
 * Show the lines that start the worker. The secret is shown only here.
 * @param {any} node
 * @param {string} gib
 */
function showCommand(node, gib) {
  byId("command-text").textContent = [
    `(umask 077; printf %s '${node.node_secret}' > node-secret)`,
    `venv/bin/python -m edgecache.worker --brain ${node.brain_url} \\`,
    `  --node-id ${node.node_id} --secret-file node-secret \\`,
    `  --dir /var/lib/zonal-worker --capacity ${gib}GiB --region ${node.region} \\`,
    "  --listen 0.0.0.0:9100",
  ].join("\n");
  show(byId("command"));
  byId("command-title").focus();
}

/** Show the organization's nodes, and return them. */
export async function showNodes() {
  const answer = await optional(get("/v1/cache/nodes"));
  const own = (answer?.nodes ?? []).filter((/** @type {any} */ node) => node.is_own);
  byId("node-list").replaceChildren(...own.map(rowOf));
  show(byId("no-nodes"), own.length === 0);
  byId("no-nodes").textContent = answer ? "You have no node yet." : "The edge cache does not answer at the moment.";
  return own;
}

/** @param {any} node */
function rowOf(node) {
  const row = stamp("node-row");
  const state = node.status === "active" ? node.health : node.status;
  fill(row, {
    region: node.region,
    state,
    meaning: MEANING.get(node.status) ?? node.status,
    id: node.node_id,
    space: `${bytes(node.used_bytes)} of ${bytes(node.capacity_bytes)}`,
    since: dated(node.created_at) + (node.created_by ? ` by ${node.created_by}` : ""),
  });
  within(row, '[data-slot="state"]').className = `health ${state}`;
  const details = /** @type {HTMLDetailsElement} */ (within(row, "details"));
  details.addEventListener("toggle", () => details.open && attempt(details, () => showDetails(details, node.node_id)));
  const remove = within(row, '[data-action="remove"]');
  show(remove, isAdmin);
  remove.setAttribute("aria-label", `Deregister: ${node.region}`);
  onPress(remove, byId("nodes"), async () => {
    await confirm("Deregister this node?", "It serves nothing from then on. What it has earned stays yours. Its files can be deleted.", "Deregister");
    await call("DELETE", `/v1/cache/nodes/${node.node_id}`);
    await showNodes();
    announce("The node is deregistered.");
  });
  return row;
}

/**
 * @param {HTMLElement} details
 * @param {string} id
 */
async function showDetails(details, id) {
  const [node, metrics, audits] = await Promise.all(
    ["", "/metrics", "/audits"].map((part) => optional(get(`/v1/cache/nodes/${id}${part}`))),
  );
  const looks = sumOf(audits?.days ?? []);
  fill(details, {
    endpoint: node?.endpoint ?? "–",
    reason: node?.status_reason ?? "",
    objects: node ? number(node.object_count) : "–",
    hits: metrics ? number(metrics.total_hits) : "–",
    served: metrics ? bytes(metrics.bytes_served) : "–",
    p95: metrics ? `${metrics.p95_latency_ms.toFixed(1)} ms` : "–",
    looks: audits ? number(looks.looks) : "–",
    right: looks.looks ? share(looks.right / looks.looks) : "–",
    wrong: audits ? `${number(looks.wrong)} wrong, ${number(looks.missing)} missing, ${number(looks.unanswered)} unanswered` : "–",
  });
  within(details, "[data-failures]").replaceChildren(
    ...(audits?.failures ?? []).map((/** @type {any} */ failure) => {
      const item = element("li", `${moment(Date.parse(failure.hour) / 1000)}: `);
      item.append(element("code", failure.sha256.slice(0, 16)), ` (${failure.path})`);
      return item;
    }),
  );
}

/** @param {any[]} days */
function sumOf(days) {
  const sums = { looks: 0, right: 0, wrong: 0, missing: 0, unanswered: 0 };
  for (const day of days) {
    for (const name of /** @type {(keyof sums)[]} */ (Object.keys(sums))) sums[name] += day[name];
  }
  return sums;
}
