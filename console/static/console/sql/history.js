// @ts-check
/** The texts that ran here, newest first: one's own; an admin's list has the environment's. */

import { get } from "../lib/api.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { tell } from "../lib/status.js";

const WAIT_MS = 300;
/** No statement ends so: PostgreSQL refuses a text whose end is not known. */
const CUT = "\n[cut: the history has no more of this text";

/** @param {(text: string) => void} open */
export function bindHistory(open) {
  let timer = 0;
  byId("history-filter").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => showHistory(open).catch(tell), WAIT_MS);
  });
}

/** @param {(text: string) => void} open */
export async function showHistory(open) {
  const wanted = /** @type {HTMLInputElement} */ (byId("history-filter")).value.trim();
  const query = new URLSearchParams({ page_size: "50", ...(wanted ? { query: wanted } : {}) });
  const { results } = await get(`/v1/sql/history?${query}`);
  byId("history-list").replaceChildren(
    ...results.map((/** @type {any} */ row) => {
      const item = stamp("history-row");
      const rows = row.row_count === null ? "" : ` · ${count(row.row_count, "row")}`;
      const outcome = row.outcome === "success" ? "" : ` · ${row.sqlstate || row.outcome}`;
      const cut = row.is_cut ? " · not the whole text" : "";
      fill(item, { about: `${whenOf(row.at)} · ${Math.round(row.elapsed_ms)} ms${rows}${outcome}${cut}`, text: row.query });
      item.classList.toggle("failed", row.outcome !== "success");
      within(item, "[data-action=open]").addEventListener("click", () => open(row.is_cut ? row.query + CUT : row.query));
      return item;
    }),
  );
  show(byId("history-none"), results.length === 0);
}

/** Return a time of today as such, any other with its day. @param {string} at */
function whenOf(at) {
  const [when, now] = [new Date(at), new Date()];
  const dateStyle = when.toDateString() === now.toDateString() ? undefined : "short";
  return when.toLocaleString(undefined, { dateStyle, timeStyle: "medium" });
}
