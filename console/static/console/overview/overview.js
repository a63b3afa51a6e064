// @ts-check
/** The overview: the first steps, what needs doing, what ran in the last day, and what is up. */

import { openPage } from "../frame/shell.js";
import { get } from "../lib/api.js";
import { bindCopies } from "../lib/clipboard.js";
import { draw } from "../lib/chart.js";
import { byId, fill, show, within } from "../lib/dom.js";
import { bytes, credits, number, share } from "../lib/format.js";
import { optional } from "../lib/optional.js";
import { greet, readSteps } from "./greeting.js";
import { showRequiredActions } from "./required_actions.js";

const HOUR_MS = 3600 * 1000;
const REFRESH_MS = 60_000;

await openPage(async (who) => {
  const facts = await read(who);
  greet(who, await readSteps(who, facts.contents));
  showRequiredActions(who, facts);
  fill(byId("state"), {
    roles: who.roles.join(", "),
    assurance: who.aal > 1 ? "Password and second factor" : "First factor only",
  });
  showFigures(facts);
  byId("login-lines").textContent = [
    `zonal login --url ${location.origin} --environment ${who.environment.id}`,
    "zonal sql -c 'SELECT 40 + 2 AS answer'",
  ].join("\n");
  bindCopies();
  setInterval(async () => {
    if (document.hidden) return;
    showFigures(await read(who));
  }, REFRESH_MS);
});

/**
 * Read everything that the page shows; null for what the role may not see or what is away.
 * @param {import("../frame/shell.js").Who} who
 * @returns {Promise<Record<string, any>>}
 */
async function read({ roles, environment }) {
  const isReader = roles.every((role) => role === "reader");
  const paths = {
    compliance: "/v1/auth/2fa/compliance",
    requests: isReader ? "" : "/v1/organization/activity",
    contents: isReader ? "" : `/v1/environments/${encodeURIComponent(environment.id)}/contents`,
    sql: "/v1/sql/activity",
    disk: "/v1/sql/usage",
    running: "/v1/sql/running",
    cache: "/v1/cache/activity",
    status: "/v1/cache/status",
    balance: isReader ? "" : "/v1/balance",
    organization: "/v1/organization",
  };
  const answers = await Promise.all(Object.values(paths).map((path) => path && optional(get(path))));
  return Object.fromEntries(Object.keys(paths).map((name, index) => [name, answers[index] || null]));
}

/** @param {Record<string, any>} facts */
function showFigures({ requests, sql, contents, disk, running, cache, status, balance }) {
  const traffic = sumOf(cache?.hours ?? []);
  const asked = traffic.hits + traffic.misses;
  const database = databaseOf(disk, contents);
  fill(byId("figures"), {
    requests: requests ? number(requests.requests) : "–",
    errors: requests ? errorsOf(requests) : "",
    sql: sql ? number(sql.requests) : "–",
    failures: sql ? `${number(sql.failures)} failed` : "",
    objects: cache ? number(asked) : "–",
    ratio: asked ? `${share(traffic.hits / asked)} from the cache` : "",
    served: cache ? bytes(traffic.egress_bytes) : "–",
    disk: disk ? bytes(disk.disk.used_bytes ?? 0) : "–",
    limit: disk ? `of ${bytes(disk.disk.limit_bytes)}` : "",
    credits: balance ? credits(balance.granted_ucr + balance.paid_ucr + balance.debt_ucr) : "–",
  });
  fill(byId("state"), {
    database: database.state,
    statements: running ? number(running.running?.length ?? running.results?.length ?? 0) : "–",
    environments: disk ? `${disk.environments.used} of ${disk.environments.limit}` : "–",
    nodes: status ? `${number(status.online_nodes)} ${status.online_nodes === 1 ? "node" : "nodes"} online` : "does not answer",
  });
  byId("state-database").className = `health ${database.isWell ? "online" : "offline"}`;
  byId("state-cache").className = `health ${status?.online_nodes ? "online" : "offline"}`;
  show(byId("credits"), balance !== null);
  showCharts(requests, sql, cache);
}

/**
 * Return what is known of the database; its contents are those of the moment, and not for readers.
 * @param {any} disk as it was measured last
 * @param {{tables: number | null} | null} contents
 */
function databaseOf(disk, contents) {
  if (contents && contents.tables === null) return { state: "does not answer", isWell: false };
  if (disk?.disk.exceeded) return { state: "over its quota", isWell: false };
  if (contents) return { state: "ready", isWell: true };
  return disk ? { state: "within its quota", isWell: true } : { state: "not known now", isWell: false };
}

/**
 * Return how many requests were answered with an error.
 * @param {{refused: number, failed: number}} requests
 */
function errorsOf({ refused, failed }) {
  return [`${number(refused)} refused`, failed ? `${number(failed)} failed` : ""].filter(Boolean).join(", ");
}

/**
 * @param {any} requests
 * @param {any} sql
 * @param {any} cache
 */
function showCharts(requests, sql, cache) {
  const since = sql?.since ?? cache?.since ?? requests?.since;
  show(byId("charts"), Boolean(since));
  if (!since) return;
  const reads = sumOf(cache?.hours ?? []);
  const isQuiet = !requests?.requests && !sql?.requests && !reads.hits && !reads.misses;
  show(byId("charts-none"), isQuiet);
  show(within(byId("charts"), ".charts"), !isQuiet);
  if (isQuiet) return;
  const moments = Array.from({ length: 24 }, (_, hour) => new Date(Date.parse(since) + hour * HOUR_MS));
  const write = (/** @type {number} */ value) => number(value);
  /**
   * @param {any[]} hours
   * @param {(row: any) => number} value
   */
  const byHour = (hours, value) => {
    const found = new Map(hours.map((row) => [Date.parse(row.hour), value(row)]));
    return moments.map((moment) => found.get(moment.getTime()) ?? 0);
  };
  show(byId("chart-requests"), requests !== null);
  if (requests) {
    draw(byId("chart-requests"), {
      title: "API requests",
      moments,
      write,
      stacked: true,
      lines: [
        { name: "succeeded", values: byHour(requests.hours, (row) => row.requests - row.refused - row.failed) },
        { name: "refused", values: byHour(requests.hours, (row) => row.refused) },
        { name: "failed", values: byHour(requests.hours, (row) => row.failed) },
      ],
    });
  }
  const statements = sql?.hours ?? [];
  draw(byId("chart-sql"), {
    title: "SQL requests",
    moments,
    write,
    stacked: true,
    lines: [
      { name: "succeeded", values: byHour(statements, (row) => row.requests - row.failures) },
      { name: "failed", values: byHour(statements, (row) => row.failures) },
    ],
  });
  show(byId("chart-cache"), cache !== null);
  if (!cache) return;
  draw(byId("chart-cache"), {
    title: "Object reads",
    moments,
    write,
    stacked: true,
    lines: [
      { name: "hits", values: byHour(cache.hours, (row) => row.hits) },
      { name: "misses", values: byHour(cache.hours, (row) => row.misses) },
    ],
  });
}

/** @param {any[]} hours */
function sumOf(hours) {
  const sums = { hits: 0, misses: 0, egress_bytes: 0 };
  for (const hour of hours) {
    for (const name of /** @type {const} */ (["hits", "misses", "egress_bytes"])) sums[name] += hour[name];
  }
  return sums;
}
