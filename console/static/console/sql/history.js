// @ts-check
/** The texts that ran here, newest first: one's own; an admin's list has the environment's. */

import { get } from "../lib/api.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { onPress } from "../lib/forms.js";
import { tell } from "../lib/status.js";

const PATH = "/v1/sql/history";
const WAIT_MS = 300;
/** No statement ends so: PostgreSQL refuses a text whose end is not known. */
const CUT = "\n[cut: the history has no more of this text";
const EXPLAINED = /** @type {Record<string, string>} */ ({ plan: "Plan", analyze: "Explain analyze" });

export class HistoryList {
  /**
   * @param {string} user the address of the one who reads
   * @param {(text: string) => void} open
   */
  constructor(user, open) {
    this.user = user;
    this.open = open;
    /** The address of the rows before those that are shown. */
    this.next = "";
    let timer = 0;
    byId("history-filter").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.show().catch(tell), WAIT_MS);
    });
    onPress(byId("history-more"), byId("history"), () => this.#more());
  }

  /** Show the newest rows. */
  async show() {
    const wanted = /** @type {HTMLInputElement} */ (byId("history-filter")).value.trim();
    const page = await get(`${PATH}?${new URLSearchParams({ page_size: "50", ...(wanted ? { query: wanted } : {}) })}`);
    byId("history-list").replaceChildren();
    this.#add(page);
    show(byId("history-none"), page.results.length === 0);
  }

  async #more() {
    const list = byId("history-list");
    const shown = list.childElementCount;
    this.#add(await get(this.next));
    // The button may be gone: the keyboard goes on at the first of the new rows.
    list.children[shown]?.querySelector("button")?.focus();
  }

  /** @param {{results: any[], next: string | null}} page */
  #add({ results, next }) {
    byId("history-list").append(...results.map((row) => this.#rowOf(row)));
    this.next = next ? PATH + new URL(next).search : "";
    show(byId("history-more"), this.next !== "");
  }

  /** @param {any} row */
  #rowOf(row) {
    const item = stamp("history-row");
    const explained = EXPLAINED[row.explain];
    // An EXPLAIN answers one row, whatever its statement did.
    const rows = row.row_count === null || explained ? "" : count(row.row_count, "row");
    const facts = [
      whenOf(row.at),
      row.user === this.user ? "" : row.user,
      `${Math.round(row.elapsed_ms)} ms`,
      rows,
      row.outcome === "success" ? "" : row.sqlstate || row.outcome,
      row.is_cut ? "not the whole text" : "",
    ];
    fill(item, { kind: explained ?? "", about: facts.filter(Boolean).join(" · "), text: row.query });
    item.classList.toggle("failed", row.outcome !== "success");
    show(within(item, "[data-slot=kind]"), explained !== undefined);
    within(item, "[data-action=open]").addEventListener("click", () => this.open(row.is_cut ? row.query + CUT : row.query));
    return item;
  }
}

/** Return a time of today as such, any other with its day; with the zone. @param {string} at */
function whenOf(at) {
  const [when, now] = [new Date(at), new Date()];
  const dateStyle = when.toDateString() === now.toDateString() ? undefined : "short";
  return when.toLocaleString(undefined, { dateStyle, timeStyle: "long" });
}
