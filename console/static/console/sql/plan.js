// @ts-check
/**
 * A plan of EXPLAIN (FORMAT JSON) as a tree that opens and closes: beside each step its own time or cost,
 * the rows that were estimated and that came, and a mark on the slow ones.
 */

import { element } from "../lib/dom.js";

/** A step with at least this share of the whole is marked. */
const SLOW = 0.3;
/** So many times more or fewer rows than estimated are marked. */
const FAR_OFF = 10;
const NOT_DETAILS = new Set(["Plans", "Node Type", "Relation Name", "Alias", "Schema", "Parallel Aware", "Async Capable", "Disabled"]);

/** @typedef {Record<string, any>} Step */
/**
 * @typedef {object} Measured
 * @property {number} weight what the step and those below it took: measured time, else estimated cost
 * @property {number} own without those below it
 * @property {number} rows that came, of all loops
 * @property {number} estimated of all loops
 */

/**
 * Return a plan as nested lists.
 * @param {any} plan PostgreSQL's JSON
 */
export function planTree(plan) {
  const [whole] = Array.isArray(plan) ? plan : [plan];
  const isTimed = "Actual Total Time" in whole.Plan;
  const root = element("div");
  root.className = "plan scroll";
  root.classList.toggle("plan-timed", isTimed);
  const list = element("ul");
  list.append(stepOf(whole.Plan, { total: measured(whole.Plan, 1).weight, processes: 1, isTimed }));
  root.append(headsOf(isTimed), list, ...triggersOf(whole), timesOf(whole));
  return root;
}

/** @param {boolean} isTimed */
function headsOf(isTimed) {
  const line = element("div");
  line.className = "plan-heads";
  line.setAttribute("aria-hidden", "true");
  const names = isTimed ? ["Step", "Time", "Rows", "Estimated", "Share"] : ["Step", "Cost", "Estimated", "Share"];
  line.append(...names.map((name) => element("span", name)));
  return line;
}

/** @param {Step} whole */
function timesOf(whole) {
  const times = ["Planning Time", "Execution Time"].filter((name) => name in whole);
  const line = element("p", times.map((name) => `${name}: ${whole[name].toLocaleString()} ms`).join(" · "));
  line.className = "muted";
  return line;
}

/** Return a line for each trigger that ran: foreign keys are among them. @param {Step} whole */
function triggersOf(whole) {
  /** @type {Step[]} */
  const triggers = whole.Triggers ?? [];
  return triggers.map((one) => {
    const name = one["Constraint Name"] ?? one["Trigger Name"];
    return element("p", `Trigger ${name} on ${one.Relation}: ${milliseconds(one.Time)}, ${one.Calls.toLocaleString()} calls`);
  });
}

/**
 * @param {Step} step
 * @param {number} processes that share the work, below a Gather
 * @returns {Measured}
 */
function measured(step, processes) {
  const loops = step["Actual Loops"] ?? 1;
  const inner = step["Workers Launched"] ? step["Workers Launched"] + 1 : processes;
  const isTimed = "Actual Total Time" in step;
  // Of a step in several processes PostgreSQL has the average, and a loop for each.
  const weight = isTimed ? (step["Actual Total Time"] * loops) / processes : step["Total Cost"] ?? 0;
  const below = (step.Plans ?? []).reduce((/** @type {number} */ sum, /** @type {Step} */ one) => sum + measured(one, inner).weight, 0);
  const rows = Math.round((step["Actual Rows"] ?? 0) * loops);
  return { weight, own: Math.max(0, weight - below), rows, estimated: Math.round(step["Plan Rows"] * Math.max(1, loops)) };
}

/**
 * @param {Step} step
 * @param {{total: number, processes: number, isTimed: boolean}} around
 */
function stepOf(step, { total, processes, isTimed }) {
  const item = element("li");
  const details = element("details");
  details.setAttribute("open", "");
  const { own, rows, estimated } = measured(step, processes);
  const share = total > 0 ? own / total : 0;
  const isRun = !isTimed || step["Actual Loops"] > 0;
  const summary = element("summary");
  const what = element("span");
  what.className = "plan-what";
  what.append(element("strong", nameOf(step)));
  const loops = step["Actual Loops"] > 1 ? ` × ${step["Actual Loops"].toLocaleString()}` : "";
  if (loops) what.append(" ", marked(loops, "muted", "loops"));
  if (!isRun) what.append(" ", marked("never executed", "muted"));
  if (share >= SLOW) what.append(" ", marked(isTimed ? "slow" : "costly", "badge plan-mark"));
  summary.append(what);
  if (isTimed) {
    const isOff = isRun && Math.max(rows, estimated) >= FAR_OFF * Math.max(1, Math.min(rows, estimated));
    const guess = figure(`${estimated.toLocaleString()} estimated`);
    if (isOff) guess.className = "plan-off";
    summary.append(figure(isRun ? milliseconds(own) : "—"), figure(isRun ? `${rows.toLocaleString()} rows` : "—"), guess);
  } else {
    summary.append(figure(Math.round(own).toLocaleString()), figure(`${estimated.toLocaleString()} rows estimated`));
  }
  summary.append(barOf(share));
  item.classList.toggle("plan-slow", share >= SLOW);
  details.append(summary, detailsOf(step));
  if (step.Plans) {
    const inner = step["Workers Launched"] ? step["Workers Launched"] + 1 : processes;
    const list = element("ul");
    list.append(...step.Plans.map((/** @type {Step} */ one) => stepOf(one, { total, processes: inner, isTimed })));
    details.append(list);
  }
  item.append(details);
  return item;
}

/** @param {Step} step */
function nameOf(step) {
  const on = step["Relation Name"] ?? step["CTE Name"] ?? step["Function Name"];
  const by = step["Index Name"] ? ` using ${step["Index Name"]}` : "";
  const type = step.Operation ?? step["Node Type"];
  return `${type}${by}${on ? ` on ${on}` : ""}`;
}

/** @param {number} time */
function milliseconds(time) {
  return `${time.toLocaleString(undefined, { maximumFractionDigits: time < 10 ? 3 : 1 })} ms`;
}

/** @param {Step} step */
function detailsOf(step) {
  const list = element("dl");
  for (const [name, value] of Object.entries(step)) {
    if (NOT_DETAILS.has(name)) continue;
    const pair = element("div");
    pair.append(element("dt", name), element("dd", detailOf(value)));
    list.append(pair);
  }
  const more = element("details");
  more.className = "plan-details";
  more.append(element("summary", "Details"), list);
  return more;
}

/** @param {any} value @returns {string} */
function detailOf(value) {
  if (Array.isArray(value)) return value.map(detailOf).join(", ");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {number} share of the whole that the step took by itself */
function barOf(share) {
  const percent = `${Math.round(share * 100)} %`;
  const bar = element("span", percent);
  bar.className = "plan-bar";
  bar.style.setProperty("--share", `${Math.round(share * 100)}%`);
  bar.title = `${percent} of the whole, by itself`;
  return bar;
}

/** @param {string} text */
function figure(text) {
  return marked(text, "plan-figure");
}

/**
 * @param {string} text
 * @param {string} name of a class
 * @param {string} [title]
 */
function marked(text, name, title = "") {
  const made = element("span", text);
  made.className = name;
  if (title) made.title = title;
  return made;
}
