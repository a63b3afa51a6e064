// @ts-check
/** Usage: what was used and charged by day, what the month will cost, and credits. */

import { openPage } from "../frame/shell.js";
import { readAddress, writeAddress } from "../lib/address.js";
import { get } from "../lib/api.js";
import { draw } from "../lib/chart.js";
import { byId, element, fill, show } from "../lib/dom.js";
import { bytes, count, credits, dated, number } from "../lib/format.js";
import { announce, refuse, tell } from "../lib/status.js";
import { bindSpendCap } from "./spend_cap.js";
import { bindTopUp, hasTopUps } from "./top_up.js";
import { showSql } from "./sql.js";
import { byDay, daysBefore, daysOf, forecast, grouped, isoDay, sums } from "./figures.js";

/** What can be charted: a title and how its values are written. */
const MEASURES = new Map([
  ["charged_ucr", { title: "Charges in credits", write: credits }],
  ["hits", { title: "Cache hits", write: number }],
  ["misses", { title: "Cache misses", write: number }],
  ["egress_bytes", { title: "Delivered", write: bytes }],
  ["storage_byte_hours", { title: "Stored, on average", write: bytes, scale: 1 / 24 }],
]);
/** What the reader chooses, by its name in the address; what the page begins with is not in it. */
const CHOICES = ["days", "measure", "by", "sql"];
/** How often usage was asked for: a slow answer to an earlier choice comes too late. */
let requests = 0;

await openPage(async (who) => {
  if (!who.roles.includes("admin") && !who.roles.includes("operator")) {
    return refuse("Only admins and operators see usage and what it costs.");
  }
  sayWhatWasPaid();
  const balance = await showBalance();
  showChoices();
  for (const name of CHOICES) {
    choiceOf(name).addEventListener("change", () => {
      keepChoices();
      void showUsage().catch(tell);
    });
  }
  addEventListener("popstate", () => {
    showChoices();
    void showUsage().catch(tell);
  });
  await showUsage();
  await bindSpendCap(who.roles.includes("admin"), balance.currency);
  bindTopUp(who.roles.includes("admin"));
});

/** Stripe sends the browser back with `#top_up=paid` or `left`. */
function sayWhatWasPaid() {
  const outcome = new URLSearchParams(location.hash.slice(1)).get("top_up");
  if (!outcome) return;
  history.replaceState(null, "", location.pathname + location.search);
  announce(
    outcome === "paid"
      ? "Thank you. The credits are booked as soon as the payment is confirmed."
      : "You left the payment page: nothing was paid.",
  );
}

async function showBalance() {
  const today = new Date();
  const first = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), 1));
  const [balance, month] = await Promise.all([
    get("/v1/balance"),
    get(`/v1/usage?since=${isoDay(first)}&until=${isoDay(today)}`),
  ]);
  const { expected_ucr, a_day_ucr } = forecast(month, today);
  const left = balance.granted_ucr + balance.paid_ucr;
  const days = a_day_ucr > 0 ? Math.floor(left / a_day_ucr) : null;
  fill(byId("figures"), {
    month: credits(month.charged_ucr),
    forecast: credits(expected_ucr),
    left: credits(left),
    lasts: days === null ? "" : days > 365 ? "for more than a year" : `for about ${count(days, "day")}`,
    granted: credits(balance.granted_ucr),
    paid: credits(balance.paid_ucr),
    debt: credits(-balance.debt_ucr),
  });
  show(byId("owed"), balance.debt_ucr < 0);
  if (hasTopUps()) fill(byId("top-up"), { currency: balance.currency });
  sayWhatIsServed(balance);
  return balance;
}

/** @param {{service: string, grace_until: string | null, stopped_by: string | null}} balance */
function sayWhatIsServed({ service, grace_until, stopped_by }) {
  const sentences = {
    grace: `The credits are used up. Buy credits before ${grace_until && dated(grace_until)}: then nodes of other operators stop serving your objects.`,
    stopped:
      stopped_by === "spend_cap"
        ? "The spend cap is reached: nodes of other operators serve your objects again next month, or with a higher cap."
        : "The credits are used up: nodes of other operators serve your objects again once the debt is paid.",
  };
  const sentence = /** @type {Record<string, string>} */ (sentences)[service] ?? "";
  byId("service").textContent = sentence;
  show(byId("service"), sentence !== "");
}

/** @param {string} name */
function choiceOf(name) {
  return /** @type {HTMLSelectElement} */ (byId(name === "sql" ? "sql-measure" : name));
}

/** @param {string} name */
function firstOf(name) {
  return [...choiceOf(name).options].find((option) => option.defaultSelected)?.value ?? "";
}

/** Show what the address says; what it does not say, or what there is not, is as at the beginning. */
function showChoices() {
  const wanted = readAddress();
  for (const name of CHOICES) {
    const isThere = [...choiceOf(name).options].some(({ value }) => value === wanted[name]);
    choiceOf(name).value = isThere ? wanted[name] : firstOf(name);
  }
}

function keepChoices() {
  const chosen = CHOICES.map((name) => [name, choiceOf(name).value]);
  writeAddress(Object.fromEntries(chosen.filter(([name, value]) => value !== firstOf(name))));
}

async function showUsage() {
  requests += 1;
  const mine = requests;
  const [days, measure, by] = ["days", "measure", "by"].map((name) => choiceOf(name).value);
  const until = new Date();
  const since = daysBefore(until, Number(days) - 1);
  const usage = await get(`/v1/usage?since=${isoDay(since)}&until=${isoDay(until)}`);
  if (mine !== requests) return;
  const { title, write, scale = 1 } = /** @type {any} */ (MEASURES.get(measure));
  const dates = daysOf(since, until);
  const groups = grouped(usage.cache, by === "total" ? "" : by, measure);
  draw(byId("chart"), {
    title,
    moments: dates.map((day) => new Date(`${day}T00:00`)),
    write,
    stacked: true,
    lines: groups.map(({ name, rows }) => ({ name, values: byDay(rows, dates, measure).map((value) => value * scale) })),
  });
  showTable(usage.cache);
  showSql(usage.sql, dates);
}

/** @param {any[]} rows */
function showTable(rows) {
  const found = sums(rows, [...MEASURES.keys()]);
  byId("bucket-rows").replaceChildren(
    ...found.map((row) => {
      const made = element("tr");
      const name = element("th", row.bucket || "(deleted)");
      name.setAttribute("scope", "row");
      made.append(element("td", row.environment || "(deleted)"), name);
      const cells = [number(row.hits), number(row.misses), bytes(row.egress_bytes), bytes(row.storage_byte_hours / 730), credits(row.charged_ucr)];
      for (const text of cells) {
        const cell = element("td", text);
        cell.className = "number";
        made.append(cell);
      }
      return made;
    }),
  );
  show(byId("buckets-table"), found.length > 0);
  show(byId("no-usage"), found.length === 0);
}
