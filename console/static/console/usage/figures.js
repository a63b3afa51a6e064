// @ts-check
/** Arithmetic over rows of usage, each of one day and environment; those of the cache of one bucket. */

const SHOWN_GROUPS = 4;
const WEEK = 7;
const HOUR_MS = 3_600_000;

/** @param {Date} at */
export function isoDay(at) {
  return at.toISOString().slice(0, 10);
}

/**
 * Return the beginning of the UTC day that is some days earlier.
 * @param {Date} at
 * @param {number} days
 */
export function daysBefore(at, days) {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() - days));
}

/**
 * Return every UTC day of a span, both ends included.
 * @param {Date} since
 * @param {Date} until
 */
export function daysOf(since, until) {
  const days = [];
  for (let at = daysBefore(since, 0); at <= until; at = daysBefore(at, -1)) days.push(isoDay(at));
  return days;
}

/**
 * Return the largest groups of rows, and the rest as one.
 * @param {any[]} rows
 * @param {string} by a field of the rows, or "" for all of them
 * @param {string} measure
 */
export function grouped(rows, by, measure) {
  if (!by) return [{ name: "all", rows }];
  /** @type {Map<string, any[]>} */
  const found = new Map();
  for (const row of rows) {
    const name = row[by] || "(deleted)";
    found.set(name, [...(found.get(name) ?? []), row]);
  }
  const groups = [...found].map(([name, own]) => ({ name, rows: own, sum: own.reduce((sum, row) => sum + row[measure], 0) }));
  groups.sort((one, other) => other.sum - one.sum);
  const rest = groups.slice(SHOWN_GROUPS).flatMap((group) => group.rows);
  const shown = groups.slice(0, SHOWN_GROUPS);
  return rest.length ? [...shown, { name: "others", rows: rest, sum: 0 }] : shown;
}

/**
 * @param {any[]} rows
 * @param {string[]} days
 * @param {string} measure
 */
export function byDay(rows, days, measure) {
  const found = new Map();
  for (const row of rows) found.set(row.day, (found.get(row.day) ?? 0) + row[measure]);
  return days.map((day) => found.get(day) ?? 0);
}

/**
 * Return the sums of each bucket, or of each environment, the most expensive first.
 * @param {any[]} rows
 * @param {string[]} measures fields of the rows
 */
export function sums(rows, measures) {
  const found = new Map();
  for (const row of rows) {
    const key = `${row.environment}/${row.bucket ?? ""}`;
    const sum = found.get(key) ?? { environment: row.environment, bucket: row.bucket, ...Object.fromEntries(measures.map((name) => [name, 0])) };
    for (const name of measures) sum[name] += row[name];
    found.set(key, sum);
  }
  return [...found.values()].sort((one, other) => other.charged_ucr - one.charged_ucr);
}

/**
 * Return what a month will cost: what it has cost, and for the days to come the average of the last
 * seven complete ones (of fewer, early in the month).
 * @param {{charged_ucr: number, cache: any[], sql: any[]}} month from its first day on
 * @param {Date} today
 */
export function forecast(month, today) {
  const first = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), 1));
  const next = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1, 1));
  const complete = daysOf(first, today).slice(0, -1).slice(-WEEK);
  const passed = hoursFrom(daysBefore(today, 0), today) / 24;
  const a_day_ucr = complete.length
    ? byDay([...month.cache, ...month.sql], complete, "charged_ucr").reduce((sum, value) => sum + value, 0) / complete.length
    : month.charged_ucr / Math.max(passed, 1 / 24);
  const leftDays = hoursFrom(today, next) / 24;
  return { expected_ucr: month.charged_ucr + a_day_ucr * leftDays, a_day_ucr };
}

/**
 * @param {Date} from
 * @param {Date} to
 */
function hoursFrom(from, to) {
  return (to.getTime() - from.getTime()) / HOUR_MS;
}
