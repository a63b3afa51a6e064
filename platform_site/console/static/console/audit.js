// @ts-check
/** The audit trail, newest first, page by page. */

import { get } from "./api.js";
import { byId, element, show } from "./dom.js";
import { onPress, onSubmit } from "./forms.js";
import { moment } from "./format.js";
import { openPage } from "./shell.js";
import { broken } from "./status.js";

const PATH = "/v1/audit";
const DAY_MS = 24 * 3600 * 1000;

/** Where the next page is. */
let older = "";

await openPage(async (who) => {
  if (!who.roles.includes("admin") && !who.roles.includes("operator")) {
    broken("Only admins and operators see the audit trail.");
    return;
  }
  onSubmit(/** @type {HTMLFormElement} */ (byId("filter")), async (values) => {
    byId("event-rows").replaceChildren();
    await showPage(`${PATH}?${query(values)}`);
  });
  onPress(byId("older"), byId("events"), () => showPage(older));
  await showPage(PATH);
});

/** @param {Record<string, string>} values */
function query(values) {
  const wanted = new URLSearchParams();
  for (const name of ["tag", "actor"]) {
    if (values[name].trim()) wanted.set(name, values[name].trim());
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

/** @param {string} path */
async function showPage(path) {
  const page = await get(path);
  byId("event-rows").append(...page.results.map(row));
  const isEmpty = !byId("event-rows").childElementCount;
  show(byId("no-events"), isEmpty);
  show(byId("events-table"), !isEmpty);
  older = page.next ? PATH + new URL(page.next).search : "";
  show(byId("older"), Boolean(older));
}

/** @param {any} event */
function row(event) {
  const made = element("tr");
  const tag = element("td");
  tag.append(element("code", event.tag));
  const address = element("td", event.address);
  address.title = event.agent;
  made.append(
    element("td", moment(Date.parse(event.at) / 1000)),
    tag,
    element("td", event.outcome),
    element("td", event.actor || "the platform"),
    element("td", event.environment),
    address,
    element("td", details(event.data)),
  );
  return made;
}

/** @param {Record<string, unknown>} data */
function details(data) {
  return Object.entries(data)
    .map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}
