// @ts-check
/** All that an event holds, in a drawer at the side, and the ways to the events of the same people. */

import { byId, element, fill, show } from "../lib/dom.js";
import { onClick } from "../lib/forms.js";
import { programOf } from "../lib/format.js";

/**
 * The people of the event that is shown.
 * @type {Record<string, string>}
 */
let shown = {};

function drawer() {
  return /** @type {HTMLDialogElement} */ (byId("event"));
}

/** @param {(filters: {actor?: string, affected?: string}) => Promise<void>} narrow adds a filter */
export function bindDrawer(narrow) {
  byId("event-close").addEventListener("click", () => drawer().close());
  drawer().addEventListener("click", (event) => {
    if (event.target === drawer()) drawer().close();
  });
  for (const name of ["actor", "affected"]) {
    onClick(byId(`only-${name}`), async () => {
      drawer().close();
      await narrow({ [name]: shown[name] });
    });
  }
}

/**
 * Return who did it, as sentences call it. Commands and tasks have no user.
 * @param {{actor: string, tag: string}} event
 */
function whoOf({ actor, tag }) {
  if (actor && actor !== "command" && actor !== "platform") return actor;
  return actor === "command" || tag.startsWith("cli:") ? "an operator of the platform" : "the platform";
}

/** @param {any} event */
export function openDrawer(event) {
  shown = { actor: whoOf(event), affected: event.affected };
  byId("event-title").textContent = event.sentence || event.tag;
  const facts = [
    ["When", new Date(event.at).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" })],
    ["What", event.summary],
    ["Who", shown.actor],
    ["User's id", event.actor_id ?? ""],
    ["Whom", event.affected],
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
  fill(drawer(), shown);
  show(byId("only-affected"), event.affected !== "");
  drawer().showModal();
}
