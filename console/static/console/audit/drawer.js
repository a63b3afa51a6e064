// @ts-check
/** All that an event holds, in a drawer at the side. */

import { byId, element } from "../lib/dom.js";
import { programOf } from "../lib/format.js";

export function bindDrawer() {
  const drawer = /** @type {HTMLDialogElement} */ (byId("event"));
  byId("event-close").addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close();
  });
}

/**
 * Return who did it. Commands and tasks have no user.
 * @param {{actor: string, tag: string}} event
 */
export function whoOf({ actor, tag }) {
  if (actor && actor !== "command" && actor !== "platform") return actor;
  return actor === "command" || tag.startsWith("cli:") ? "an operator of the platform" : "the platform";
}

/**
 * Return what happened. The summary of a sign-in names all that may have become of it.
 * @param {{tag: string, summary: string, outcome: string}} event
 */
export function whatOf({ tag, summary, outcome }) {
  if (tag !== "api:session:create") return summary || tag;
  if (outcome === "success") return "A user signed in.";
  return outcome === "refused" ? "A sign-in was refused." : "A sign-in waits for a second factor.";
}

/** @param {any} event */
export function openDrawer(event) {
  byId("event-title").textContent = whatOf(event);
  const facts = [
    ["When", new Date(event.at).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" })],
    ["Who", whoOf(event)],
    ["User's id", event.actor_id ?? ""],
    ["Outcome", event.outcome],
    ["Environment", event.environment],
    ["Address", event.address],
    ["Program", event.agent ? programOf(event.agent) : ""],
    ["Event", event.tag],
    ["Request", event.request_id],
    ...Object.entries(event.data).map(([name, value]) => [
      name.replaceAll("_", " "),
      typeof value === "object" ? JSON.stringify(value) : String(value),
    ]),
  ];
  byId("event-facts").replaceChildren(
    ...facts
      .filter(([, value]) => value)
      .map(([name, value]) => {
        const row = element("div");
        row.append(element("dt", name), element("dd", value));
        return row;
      }),
  );
  /** @type {HTMLDialogElement} */ (byId("event")).showModal();
}
