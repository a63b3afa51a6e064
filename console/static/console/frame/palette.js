// @ts-check
/** The command palette (Ctrl K): pages, environments, data, members and actions by a few letters. */

import { tell } from "../lib/status.js";
import { byId, element, show, within } from "../lib/dom.js";

const SHOWN = 12;
const PAUSE_MS = 200;

/**
 * @typedef {object} Command
 * @property {string} kind as the list shows it
 * @property {string} name
 * @property {() => void} run
 */

/** @type {Command[]} */
let commands = [];
/** @type {Command[]} */
let shown = [];
let chosen = 0;
/** @type {() => Promise<Command[]>[]} */
let look = () => [];
let hasLooked = false;
/** @type {(text: string) => Promise<Command[]>} */
let searchFurther = async () => [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let pause;

/**
 * Bind the palette and its keys.
 * @param {Command[]} actions in addition to the sidebar's pages
 * @param {() => Promise<Command[]>[]} findable called once, at the first search
 * @param {(text: string) => Promise<Command[]>} further called for each text, after a pause in typing
 */
export function bindPalette(actions, findable, further) {
  commands = [...pages(), ...actions];
  look = findable;
  searchFurther = further;
  byId("palette-open").addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (dialog().open) dialog().close();
    else open();
  });
  const input = byId("palette-query");
  input.addEventListener("input", () => {
    search(valueOf(input));
    clearTimeout(pause);
    pause = setTimeout(() => searchFurther(valueOf(input).trim()).then(add, tell), PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      choose((chosen + step + shown.length) % Math.max(1, shown.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(shown[chosen]);
    }
  });
  dialog().addEventListener("click", (event) => {
    if (event.target === dialog()) dialog().close();
  });
}

function dialog() {
  return /** @type {HTMLDialogElement} */ (byId("palette"));
}

/** @param {HTMLElement} input */
function valueOf(input) {
  return /** @type {HTMLInputElement} */ (input).value;
}

function open() {
  // One dialog at a time: what a question is about stays in view.
  if (document.querySelector("dialog[open]")) return;
  const input = /** @type {HTMLInputElement} */ (byId("palette-query"));
  input.value = "";
  dialog().showModal();
  search("");
  if (!hasLooked) void loadMore();
}

/** @returns {Command[]} */
function pages() {
  const links = /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("#sidebar nav li:not([hidden]) a"));
  return [...links].map((link) => ({
    kind: "Page",
    name: link.textContent?.trim() ?? "",
    run: () => location.assign(link.href),
  }));
}

/** Add what is not on the page, each kind as soon as it is there. */
async function loadMore() {
  hasLooked = true;
  const all = await Promise.allSettled(look().map((found) => found.then(add)));
  const failed = /** @type {PromiseRejectedResult | undefined} */ (all.find((one) => one.status === "rejected"));
  if (!failed) return;
  hasLooked = false;
  tell(failed.reason);
}

/** @param {Command[]} found */
function add(found) {
  const known = new Set(commands.map(({ kind, name }) => `${kind} ${name}`));
  commands = [...commands, ...found.filter(({ kind, name }) => !known.has(`${kind} ${name}`))];
  if (!found.length || !dialog().open) return;
  // Keep what the arrow keys have chosen in the meantime.
  const before = shown[chosen];
  search(valueOf(byId("palette-query")));
  choose(Math.max(0, shown.indexOf(before)));
}

/** @param {string} text */
function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = commands
    .filter(({ kind, name }) => words.every((word) => `${kind} ${name}`.toLowerCase().includes(word)))
    .map((command) => ({ command, isStart: command.name.toLowerCase().startsWith(words[0] ?? "") }));
  scored.sort((one, other) => Number(other.isStart) - Number(one.isStart));
  shown = scored.slice(0, SHOWN).map(({ command }) => command);
  byId("palette-list").replaceChildren(...shown.map(optionOf));
  show(byId("palette-none"), shown.length === 0);
  choose(0);
}

/**
 * @param {Command} command
 * @param {number} index
 */
function optionOf(command, index) {
  const option = element("li");
  option.id = `palette-${index}`;
  option.setAttribute("role", "option");
  const kind = element("span", command.kind);
  kind.className = "muted";
  option.append(element("span", command.name), kind);
  option.addEventListener("mousemove", () => chosen === index || choose(index));
  option.addEventListener("click", () => take(command));
  return option;
}

/** @param {number} index */
function choose(index) {
  chosen = index;
  const options = [...byId("palette-list").children];
  options.forEach((option, each) => option.setAttribute("aria-selected", String(each === index)));
  options[index]?.scrollIntoView({ block: "nearest" });
  const query = within(dialog(), "input");
  if (options.length) query.setAttribute("aria-activedescendant", `palette-${index}`);
  else query.removeAttribute("aria-activedescendant");
}

/** @param {Command | undefined} command */
function take(command) {
  if (!command) return;
  dialog().close();
  command.run();
}
