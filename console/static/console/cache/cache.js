// @ts-check
/** The edge cache: charts and nodes. */

import { get } from "../lib/api.js";
import { draw } from "../lib/chart.js";
import { byId, element, fill, show } from "../lib/dom.js";
import { bytes, share } from "../lib/format.js";
import { Problem } from "../lib/problem.js";
import { openPage } from "../frame/shell.js";
import { tell } from "../lib/status.js";

const REFRESH_MS = 30_000;

await openPage(async () => {
  await showReadings();
  byId("hours").addEventListener("change", () => void showCharts().catch(tell));
  setInterval(() => document.hidden || showReadings().catch(tell), REFRESH_MS);
});

async function showReadings() {
  const isThere = await whileThere(async () => {
    const [status, metrics, { nodes }, buckets] = await Promise.all([
      get("/v1/cache/status"),
      get("/v1/cache/metrics"),
      get("/v1/cache/nodes"),
      get("/v1/cache/buckets"),
    ]);
    const requests = metrics.total_hits + metrics.total_misses;
    fill(byId("figures"), {
      hit_ratio: requests ? share(metrics.hit_ratio) : "–",
      requests: requests.toLocaleString(),
      served: bytes(metrics.bytes_served),
      stored: bytes(status.used_cache_bytes),
      capacity: bytes(status.total_cache_bytes),
      nodes: `${status.online_nodes} of ${status.total_nodes}`,
      p95: requests ? `${metrics.p95_latency_ms.toFixed(1)} ms` : "–",
    });
    showNodes(nodes);
    showFirstStep(buckets.results.length > 0, requests > 0);
  });
  show(byId("readings"), isThere);
  show(byId("nodes"), isThere);
  await showCharts();
}

/**
 * Run an action that needs the cache; report if the cache is unavailable.
 * @param {() => Promise<void>} action
 */
async function whileThere(action) {
  const banner = byId("away");
  try {
    await action();
    show(banner, false);
    return true;
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "cache_unavailable") throw error;
    show(banner);
    return false;
  }
}

/**
 * Lead on from a cache that has nothing to deliver yet.
 * @param {boolean} hasBuckets
 * @param {boolean} isRead
 */
function showFirstStep(hasBuckets, isRead) {
  show(byId("first"), !hasBuckets || !isRead);
  fill(byId("first"), {
    title: hasBuckets ? "Nothing was read yet" : "No bucket yet",
    step: hasBuckets
      ? "Upload a file to a bucket and open it: figures and charts begin with the first read."
      : "The cache delivers the objects of your buckets from the nearest node. Begin with a bucket.",
    link: hasBuckets ? "Open your buckets" : "Create a bucket",
  });
}

/** @param {any[]} nodes */
function showNodes(nodes) {
  const rows = nodes
    .toSorted((one, other) => one.region.localeCompare(other.region))
    .map((node) => {
      const row = element("tr");
      const region = element("th", node.region);
      region.setAttribute("scope", "row");
      const health = element("td");
      const state = element("span", node.status === "active" ? node.health : node.status);
      state.className = `health ${node.status === "active" ? node.health : node.status}`;
      health.append(state);
      row.append(region, health, number(bytes(node.used_bytes)), number(bytes(node.capacity_bytes)));
      row.append(element("td", node.is_own ? "yours" : ""));
      return row;
    });
  byId("node-rows").replaceChildren(...rows);
  show(byId("node-table"), rows.length > 0);
  show(byId("no-nodes"), rows.length === 0);
}

/** @param {string} text */
function number(text) {
  const cell = element("td", text);
  cell.className = "number";
  return cell;
}

async function showCharts() {
  const hours = /** @type {HTMLSelectElement} */ (byId("hours")).value;
  const { samples } = await get(`/v1/cache/metrics/history?hours=${hours}`);
  const moments = samples.map((/** @type {any} */ each) => new Date(each.collected_at));
  const [hits, misses, served] = ["total_hits", "total_misses", "bytes_served"].map((name) => rises(samples, name));
  const seconds = moments.map((/** @type {Date} */ at, /** @type {number} */ index) =>
    index ? (at.getTime() - moments[index - 1].getTime()) / 1000 : 0,
  );
  /** @param {(number | null)[]} values */
  const each = (values) => values.map((value, index) => (value === null ? null : value / seconds[index]));
  const ratios = hits.map((value, index) => {
    const all = (value ?? 0) + (misses[index] ?? 0);
    return value === null || all === 0 ? null : value / all;
  });
  draw(byId("chart-ratio"), { title: "Hit ratio", moments, lines: [{ name: "hits", values: ratios }], write: share, top: 1 });
  draw(byId("chart-traffic"), {
    title: "Traffic",
    moments,
    lines: [{ name: "served", values: each(served) }],
    write: (value) => `${bytes(value)}/s`,
  });
  draw(byId("chart-latency"), {
    title: "Latency",
    moments,
    lines: ["p95", "p99"].map((name) => ({
      name,
      values: samples.map((/** @type {any} */ sample) => sample[`${name}_latency_ms`]),
    })),
    write: (value) => `${value.toFixed(1)} ms`,
  });
}

/**
 * Return the increase of a counter between samples; a restart of the brain leaves a gap.
 * @param {any[]} samples
 * @param {string} name
 * @returns {(number | null)[]}
 */
function rises(samples, name) {
  return samples.map((sample, index) => {
    const rise = index ? sample[name] - samples[index - 1][name] : -1;
    return rise < 0 ? null : rise;
  });
}
