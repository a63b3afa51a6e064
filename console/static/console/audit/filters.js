// @ts-check
/** What the trail is filtered by: the form, its place in the address, and the API's query. */

import { byId, element, show } from "../lib/dom.js";
import { mark } from "../lib/forms.js";

/** @typedef {Record<string, string>} Filters by the fields' names, '' for those that are not used */

/** What the line of filters in use calls them. */
const NAMES = new Map([
  ["search", "Search"],
  ["actor", "Who"],
  ["affected", "Whom"],
  ["tag", "Event"],
  ["outcome", "Outcome"],
  ["environment", "Environment"],
  ["when", "When"],
  ["since", "From"],
  ["until", "To"],
]);
const HOUR_MS = 3_600_000;
/** The beginnings of spans that end now; days are those of the reader's calendar. */
const SPANS = /** @type {Record<string, (now: Date) => Date>} */ ({
  "1h": (now) => new Date(now.getTime() - HOUR_MS),
  "24h": (now) => new Date(now.getTime() - 24 * HOUR_MS),
  "7d": (now) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - 6),
  "30d": (now) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - 29),
});

function form() {
  return /** @type {HTMLFormElement} */ (byId("filter"));
}

/** @param {string} name */
function fieldOf(name) {
  return /** @type {HTMLInputElement | HTMLSelectElement} */ (form().elements.namedItem(name));
}

/** @returns {Filters} */
export function readFilters() {
  return Object.fromEntries([...NAMES.keys()].map((name) => [name, fieldOf(name).value.trim()]));
}

/**
 * Show filters in the form, also a choice that it does not offer, such as an environment that is gone.
 * @param {Filters} filters
 */
export function writeFilters(filters) {
  for (const name of NAMES.keys()) {
    const field = fieldOf(name);
    const value = filters[name] ?? "";
    field.value = value;
    if (field.value === value || !(field instanceof HTMLSelectElement) || name === "when") continue;
    field.append(new Option(value, value));
    field.value = value;
  }
}

/**
 * Mark a span in which nothing can be.
 * @param {Filters} filters
 */
export function refuseImpossible({ since, until }) {
  const isImpossible = Boolean(since && until && until < since);
  if (isImpossible) {
    byId("further").setAttribute("open", "");
    mark(form(), "until", "This day is before the first one.");
    fieldOf("until").focus();
  }
  return isImpossible;
}

/**
 * @param {Filters} filters
 * @param {Date} now
 */
export function queryOf(filters, now) {
  const query = new URLSearchParams();
  for (const name of ["search", "actor", "affected", "tag", "outcome", "environment"]) {
    if (filters[name]) query.set(name, filters[name]);
  }
  const begins = SPANS[filters.when]?.(now) ?? null;
  const since = filters.since ? midnight(filters.since, 0) : null;
  const first = begins && since && since > begins ? since : (begins ?? since);
  if (first) query.set("since", first.toISOString());
  // To the end of that day.
  if (filters.until) query.set("until", midnight(filters.until, 1).toISOString());
  return query;
}

/**
 * Return the midnight of a day in the reader's zone: a day there may have 23 or 25 hours.
 * @param {string} text as a field has it: 2026-11-29
 * @param {number} daysLater
 */
function midnight(text, daysLater) {
  const [year, month, day] = text.split("-").map(Number);
  return new Date(year, month - 1, day + daysLater);
}

/**
 * List the filters in use, each with a button that removes it.
 * @param {Filters} filters
 * @param {(name: string) => void} remove
 */
export function showChips(filters, remove) {
  const used = [...NAMES].filter(([name]) => filters[name]);
  byId("chips").replaceChildren(
    ...used.map(([name, label]) => {
      const field = fieldOf(name);
      const value = field instanceof HTMLSelectElement ? field.selectedOptions[0].text : filters[name];
      const item = element("li", `${label}: ${value}`);
      const button = element("button", "×");
      button.setAttribute("type", "button");
      button.setAttribute("aria-label", `Remove the filter ${label}: ${value}`);
      button.addEventListener("click", () => remove(name));
      item.append(button);
      return item;
    }),
  );
  show(byId("used"), used.length > 0);
}
