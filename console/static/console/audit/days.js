// @ts-check
/** Events below the headings of their days, in the reader's zone. */

import { byId, element, fill, show, stamp, within } from "../lib/dom.js";

/** @typedef {any} AuditEvent of the API */

/**
 * Add a page of events, newest first, below those that are there.
 * @param {AuditEvent[]} events
 * @param {(event: AuditEvent) => void} open called for the one that is pressed
 */
export function showEvents(events, open) {
  const days = byId("days");
  for (const event of events) {
    const name = new Date(event.at).toLocaleDateString(undefined, { dateStyle: "full" });
    let day = days.lastElementChild;
    if (!day || day.querySelector("h3")?.textContent !== name) {
      day = stamp("day");
      fill(day, { day: name });
      days.append(day);
    }
    within(day, "ol").append(rowOf(event, open));
  }
}

/**
 * @param {AuditEvent} event
 * @param {(event: AuditEvent) => void} open
 */
function rowOf(event, open) {
  const row = stamp("event-row");
  within(row, "time").setAttribute("datetime", event.at);
  const button = within(row, "button");
  button.replaceChildren(...marked(event.sentence || event.tag, [event.actor, event.affected]));
  button.addEventListener("click", () => open(event));
  const outcome = within(row, ".outcome");
  outcome.textContent = event.outcome;
  show(outcome, event.outcome !== "success");
  const time = new Date(event.at).toLocaleTimeString(undefined, { timeStyle: "medium" });
  fill(row, { time, place: event.environment });
  return row;
}

/**
 * Return a sentence with the people in bold.
 * @param {string} sentence
 * @param {string[]} people
 */
function marked(sentence, people) {
  /** @type {(string | HTMLElement)[]} */
  const parts = [];
  let rest = sentence;
  for (const name of people) {
    const at = name ? rest.indexOf(name) : -1;
    if (at < 0) continue;
    parts.push(rest.slice(0, at), element("strong", name));
    rest = rest.slice(at + name.length);
  }
  return [...parts, rest];
}
