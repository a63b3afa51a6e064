// @ts-check
/** A plan of EXPLAIN (FORMAT JSON) as a tree that opens and closes, with the costly steps marked. */

import { element } from "../lib/dom.js";

/** A step with at least this share of the whole is marked. */
const COSTLY = 0.3;
const NOT_DETAILS = new Set(["Plans", "Node Type", "Relation Name", "Alias", "Schema", "Parallel Aware", "Async Capable", "Disabled"]);

/** @typedef {Record<string, any>} Step */

/**
 * Return a plan as nested lists.
 * @param {any} plan PostgreSQL's JSON
 */
export function planTree(plan) {
  const [whole] = Array.isArray(plan) ? plan : [plan];
  const root = element("div");
  root.className = "plan";
  const total = weightOf(whole.Plan);
  const list = element("ul");
  list.append(stepOf(whole.Plan, total));
  root.append(list, timesOf(whole));
  return root;
}

/** @param {Step} whole */
function timesOf(whole) {
  const times = ["Planning Time", "Execution Time"].filter((name) => name in whole);
  const line = element("p", times.map((name) => `${name}: ${whole[name]} ms`).join(" · "));
  line.className = "muted";
  return line;
}

/**
 * @param {Step} step
 * @param {number} total
 */
function stepOf(step, total) {
  const item = element("li");
  const details = element("details");
  details.setAttribute("open", "");
  const summary = element("summary");
  /** @type {number[]} */
  const below = (step.Plans ?? []).map(weightOf);
  const own = Math.max(0, below.reduce((rest, one) => rest - one, weightOf(step)));
  const share = total > 0 ? own / total : 0;
  const name = element("strong", nameOf(step));
  summary.append(name, " ", muted(factsOf(step)), barOf(share));
  if (share >= COSTLY) item.className = "plan-costly";
  details.append(summary, detailsOf(step));
  if (step.Plans) {
    const list = element("ul");
    list.append(...step.Plans.map((/** @type {Step} */ one) => stepOf(one, total)));
    details.append(list);
  }
  item.append(details);
  return item;
}

/** Return what a step and those below it took: measured time, else estimated cost. @param {Step} step */
function weightOf(step) {
  if ("Actual Total Time" in step) return step["Actual Total Time"] * (step["Actual Loops"] ?? 1);
  return step["Total Cost"] ?? 0;
}

/** @param {Step} step */
function nameOf(step) {
  const on = step["Relation Name"] ?? step["CTE Name"] ?? step["Function Name"];
  const by = step["Index Name"] ? ` using ${step["Index Name"]}` : "";
  return `${step["Node Type"]}${by}${on ? ` on ${on}` : ""}`;
}

/** @param {Step} step */
function factsOf(step) {
  const facts = [];
  if ("Actual Rows" in step) {
    const loops = step["Actual Loops"] > 1 ? ` × ${step["Actual Loops"]}` : "";
    facts.push(`${step["Actual Rows"]} rows${loops} (${step["Plan Rows"]} expected)`, `${step["Actual Total Time"]} ms`);
  } else {
    facts.push(`${step["Plan Rows"]} rows expected`, `cost ${step["Total Cost"]}`);
  }
  return facts.join(", ");
}

/** @param {Step} step */
function detailsOf(step) {
  const list = element("dl");
  for (const [name, value] of Object.entries(step)) {
    if (NOT_DETAILS.has(name)) continue;
    const pair = element("div");
    pair.append(element("dt", name), element("dd", Array.isArray(value) ? value.join(", ") : String(value)));
    list.append(pair);
  }
  const more = element("details");
  more.className = "plan-details";
  more.append(element("summary", "Details"), list);
  return more;
}

/** @param {number} share of the whole that the step took by itself */
function barOf(share) {
  const bar = element("span");
  bar.className = "plan-bar";
  bar.style.setProperty("--share", `${Math.round(share * 100)}%`);
  bar.title = `${Math.round(share * 100)} % by itself`;
  const text = element("span", `${Math.round(share * 100)} %`);
  bar.append(text);
  return bar;
}

/** @param {string} text */
function muted(text) {
  const made = element("span", text);
  made.className = "muted";
  return made;
}
