// @ts-check
/** The audit trail, newest first, day by day: sentences, with the details in a drawer. */

import { openPage } from "../frame/shell.js";
import { readAddress, writeAddress } from "../lib/address.js";
import { get } from "../lib/api.js";
import { byId, show } from "../lib/dom.js";
import { save } from "../lib/download.js";
import { attempt, onPress } from "../lib/forms.js";
import { zone } from "../lib/format.js";
import { announce, refuse } from "../lib/status.js";
import { showEvents } from "./days.js";
import { bindDrawer, openDrawer } from "./drawer.js";
import { queryOf, readFilters, refuseImpossible, showChips, writeFilters } from "./filters.js";

const PATH = "/v1/audit";
/** An export is made in the browser, page by page. */
const MOST_EXPORTED = 10_000;

/** Where the next page is. */
let older = "";
/** How often the list was asked for: a slow answer to an earlier request comes too late. */
let requests = 0;
/**
 * What the list is filtered by.
 * @type {import("./filters.js").Filters}
 */
let filters = {};

await openPage(async (who) => {
  if (!who.roles.includes("admin") && !who.roles.includes("operator")) {
    refuse("Only admins and operators see the audit trail.");
    return;
  }
  byId("environment").append(...who.environments.map(({ id, name }) => new Option(name, id)));
  byId("zone").textContent = `Days and times are those of ${zone()}.`;
  bindDrawer((more) => change({ ...filters, ...more }));
  const form = /** @type {HTMLFormElement} */ (byId("filter"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(byId("events"), () => change(readFilters()));
  });
  for (const select of form.querySelectorAll("select")) select.addEventListener("change", () => form.requestSubmit());
  onPress(byId("clear"), byId("events"), () => change({}));
  onPress(byId("refresh"), byId("events"), async () => {
    await showFirst();
    announce("The list is up to date.");
  });
  onPress(byId("older"), byId("events"), () => showPage(older));
  onPress(byId("export"), byId("events"), exportAll);
  addEventListener("popstate", () => void attempt(byId("events"), showAddressed));
  await showAddressed();
});

/** Show what the address says. */
async function showAddressed() {
  writeFilters(readAddress());
  await change(readFilters(), { isStep: false });
}

/**
 * @param {import("./filters.js").Filters} wanted
 * @param {{isStep?: boolean}} [options]
 */
async function change(wanted, options) {
  writeFilters(wanted);
  if (refuseImpossible(wanted)) return;
  filters = wanted;
  writeAddress(wanted, options);
  showChips(wanted, (name) => void remove(name));
  await showFirst();
}

/** @param {string} name */
async function remove(name) {
  const at = [...byId("chips").children].findIndex((chip) => chip.contains(document.activeElement));
  const rest = { ...filters, [name]: "" };
  await attempt(byId("events"), () => change(rest));
  const chip = byId("chips").children[at] ?? byId("chips").lastElementChild;
  (chip?.querySelector("button") ?? byId("search")).focus();
}

async function showFirst() {
  await showPage(`${PATH}?${queryOf(filters, new Date())}`, { isFirst: true });
}

/**
 * @param {string} path
 * @param {{isFirst?: boolean}} [options]
 */
async function showPage(path, { isFirst = false } = {}) {
  requests += 1;
  const mine = requests;
  const page = await get(path);
  if (mine !== requests) return;
  if (isFirst) byId("days").replaceChildren();
  showEvents(page.results, openDrawer);
  const isEmpty = !byId("days").childElementCount;
  const isFiltered = Object.values(filters).some(Boolean);
  byId("no-events").textContent = isFiltered ? "No event matches these filters." : "Nothing has happened yet.";
  show(byId("no-events"), isEmpty);
  show(byId("export"), !isEmpty);
  older = page.next ? PATH + new URL(page.next).search : "";
  show(byId("older"), Boolean(older));
}

async function exportAll() {
  const lines = [];
  let next = `${PATH}?${new URLSearchParams([...queryOf(filters, new Date()), ["page_size", "200"]])}`;
  while (next && lines.length < MOST_EXPORTED) {
    const page = await get(next);
    lines.push(...page.results.map((/** @type {any} */ event) => JSON.stringify(event)));
    next = page.next ? PATH + new URL(page.next).search : "";
  }
  save("audit.ndjson", `${lines.join("\n")}\n`, "application/x-ndjson");
  const more = next ? " Older ones are left out: set an end." : "";
  announce(`${lines.length.toLocaleString()} events are in your downloads.${more}`);
}
