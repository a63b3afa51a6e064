// @ts-check
/** The audit trail, newest first, page by page: sentences, with the details in a drawer. */

import { openPage } from "../frame/shell.js";
import { get } from "../lib/api.js";
import { byId, element, show } from "../lib/dom.js";
import { save } from "../lib/download.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { moment } from "../lib/format.js";
import { announce, broken } from "../lib/status.js";
import { bindDrawer, openDrawer, whatOf, whoOf } from "./drawer.js";

const PATH = "/v1/audit";
const DAY_MS = 24 * 3600 * 1000;
/** An export is made in the browser, page by page. */
const MOST_EXPORTED = 10_000;

/** Where the next page is. */
let older = "";
let filters = new URLSearchParams();

await openPage(async (who) => {
  if (!who.roles.includes("admin") && !who.roles.includes("operator")) {
    broken("Only admins and operators see the audit trail.");
    return;
  }
  offerEnvironments(who);
  bindDrawer();
  onSubmit(/** @type {HTMLFormElement} */ (byId("filter")), async (values) => {
    filters = query(values);
    await showFirst();
  });
  onPress(byId("older"), byId("events"), () => showPage(older));
  onPress(byId("export"), byId("events"), exportAll);
  await showFirst();
});

/** @param {import("../frame/shell.js").Who} who */
function offerEnvironments({ environments }) {
  byId("environment").append(
    ...environments.map((place) => {
      const option = /** @type {HTMLOptionElement} */ (element("option", place.name));
      option.value = place.id;
      return option;
    }),
  );
}

/** @param {Record<string, string>} values */
function query(values) {
  const wanted = new URLSearchParams();
  for (const name of ["tag", "actor", "outcome", "environment"]) {
    if (values[name]?.trim()) wanted.set(name, values[name].trim());
  }
  if (values.since) wanted.set("since", midnight(values.since, 0));
  // To the end of that day.
  if (values.until) wanted.set("until", midnight(values.until, DAY_MS));
  return wanted;
}

/**
 * Return the midnight of a day in the reader's time zone.
 * @param {string} day
 * @param {number} laterMs
 */
function midnight(day, laterMs) {
  return new Date(new Date(`${day}T00:00`).getTime() + laterMs).toISOString();
}

async function showFirst() {
  byId("event-rows").replaceChildren();
  await showPage(`${PATH}?${filters}`);
}

/** @param {string} path */
async function showPage(path) {
  const page = await get(path);
  byId("event-rows").append(...page.results.map(row));
  const isEmpty = !byId("event-rows").childElementCount;
  show(byId("no-events"), isEmpty);
  show(byId("events-table"), !isEmpty);
  show(byId("export"), !isEmpty);
  older = page.next ? PATH + new URL(page.next).search : "";
  show(byId("older"), Boolean(older));
}

/** @param {any} event */
function row(event) {
  const made = element("tr");
  const what = element("td");
  const button = element("button", whatOf(event));
  button.setAttribute("type", "button");
  button.className = "link";
  button.addEventListener("click", () => openDrawer(event));
  what.append(button);
  const outcome = element("td");
  const badge = element("span", event.outcome);
  badge.className = event.outcome === "success" ? "outcome" : "outcome bad";
  outcome.append(badge);
  made.append(
    element("td", moment(Date.parse(event.at) / 1000)),
    what,
    element("td", whoOf(event)),
    outcome,
    element("td", event.environment),
  );
  return made;
}

async function exportAll() {
  const lines = [];
  let next = `${PATH}?${new URLSearchParams([...filters, ["page_size", "200"]])}`;
  while (next && lines.length < MOST_EXPORTED) {
    const page = await get(next);
    lines.push(...page.results.map((/** @type {any} */ event) => JSON.stringify(event)));
    next = page.next ? PATH + new URL(page.next).search : "";
  }
  save("audit.ndjson", `${lines.join("\n")}\n`, "application/x-ndjson");
  const more = next ? " Older ones are left out: set an end." : "";
  announce(`${lines.length} events are in your downloads.${more}`);
}
