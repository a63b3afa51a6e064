// @ts-check
/** A list of things that can be removed. */

import { element, fill, stamp, within } from "./dom.js";
import { onPress } from "./forms.js";

/**
 * @typedef {object} RemovableItem
 * @property {string} name
 * @property {string} about
 * @property {() => Promise<void>} remove
 */

/**
 * @param {HTMLElement} list
 * @param {HTMLElement} section where refusals are shown
 * @param {RemovableItem[]} things
 * @param {string} empty what to say where there are none
 */
export function showRemovableList(list, section, things, empty) {
  const none = element("li", empty);
  none.className = "muted";
  list.replaceChildren(...(things.length ? things.map((thing) => rowOf(thing, section)) : [none]));
}

/**
 * @param {RemovableItem} thing
 * @param {HTMLElement} section
 */
function rowOf({ name, about, remove }, section) {
  const row = stamp("thing-row");
  fill(row, { name, about });
  const button = within(row, "[data-action=remove]");
  button.setAttribute("aria-label", `Remove: ${name}`);
  onPress(button, section, remove);
  return row;
}
