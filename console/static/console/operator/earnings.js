// @ts-check
/** What nodes earned by day, and statements to download. */

import { get } from "../lib/api.js";
import { draw } from "../lib/chart.js";
import { byId, fill } from "../lib/dom.js";
import { download } from "../lib/download.js";
import { onSubmit } from "../lib/forms.js";
import { money, share } from "../lib/format.js";
import { byDay, daysOf, grouped } from "../usage/figures.js";

export function bindEarnings() {
  const month = /** @type {HTMLInputElement} */ (byId("month"));
  month.value = new Date().toISOString().slice(0, 7);
  month.max = month.value;
  onSubmit(/** @type {HTMLFormElement} */ (byId("statement-form")), async (values) => {
    await download(`/v1/cache/statement?month=${values.month}`, "text/csv", `statement-${values.month}.csv`);
  });
}

/** @param {any[]} nodes */
export async function showEarnings(nodes) {
  const [earnings, balance] = await Promise.all([get("/v1/cache/earnings"), get("/v1/balance")]);
  const { currency } = balance;
  fill(byId("figures"), {
    earned: money(earnings.earned_ucr, currency),
    share: `${share(Number(earnings.share))} of paid fees`,
    held: money(balance.held_ucr, currency),
    payable: money(balance.payable_ucr, currency),
    minimum: `paid out from ${money(balance.payout_minimum_cents * 1e9, currency)} on`,
    forfeited: money(balance.forfeited_ucr, currency),
  });
  const regions = new Map(nodes.map((node) => [node.node_id, node.region]));
  const rows = earnings.days.map((/** @type {any} */ row) => ({ ...row, node: regions.get(row.node_id) ?? row.node_id.slice(0, 8) }));
  const days = daysOf(new Date(earnings.since), new Date(earnings.until));
  const groups = grouped(rows, "node", "earned_ucr");
  draw(byId("chart"), {
    title: "Earned by day",
    moments: days.map((day) => new Date(`${day}T00:00`)),
    write: (value) => money(value, currency),
    stacked: true,
    lines: (groups.length ? groups : [{ name: "nothing yet", rows: [] }]).map((group) => ({
      name: group.name,
      values: byDay(group.rows, days, "earned_ucr"),
    })),
  });
}
