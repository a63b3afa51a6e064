// @ts-check
/** Charts by uPlot in the page's colours, with a summary in words for screen readers. */

import uPlot from "../../vendor/uplot.js";
import { element } from "./dom.js";
import { zone } from "./format.js";

const HEIGHT = 180;
const HOUR_S = 3600;
/** Longer spans are labelled by day. */
const SHORT_S = 48 * HOUR_S;

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {(number | null)[]} values one a moment; null is a gap
 */
/**
 * @typedef {object} Chart
 * @property {string} title
 * @property {Date[]} moments oldest first
 * @property {Line[]} lines
 * @property {(value: number) => string} write
 * @property {number} [top] of the scale; else the highest value's
 * @property {boolean} [stacked] as bars on top of each other
 */

/** @type {Map<HTMLElement, {chart: Chart, plot: uPlot}>} */
const drawn = new Map();
const resized = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const plot = drawn.get(/** @type {HTMLElement} */ (target))?.plot;
    if (plot && contentRect.width) plot.setSize({ width: contentRect.width, height: HEIGHT });
  }
});

for (const [source, event] of /** @type {const} */ ([
  [document, "themechange"],
  [matchMedia("(prefers-color-scheme: dark)"), "change"],
])) {
  source.addEventListener(event, () => drawn.forEach(({ chart }, figure) => draw(figure, chart)));
}

/**
 * Draw a chart into a figure, in the place of the one before.
 * @param {HTMLElement} figure
 * @param {Chart} chart
 */
export function draw(figure, chart) {
  drawn.get(figure)?.plot.destroy();
  const caption = element("figcaption");
  const marks = chart.lines.map(({ name, values }) => markOf(name, lastOf(values), chart.write));
  caption.append(element("strong", chart.title), ...zoneOf(chart), ...marks);
  const place = element("div");
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", inWords(chart));
  figure.replaceChildren(caption, place);
  marks.forEach((mark, index) => mark.classList.add(`series-${index % 5}`));
  const plot = new uPlot(optionsOf(figure, chart, marks), dataOf(chart), place);
  drawn.set(figure, { chart, plot });
  resized.observe(figure);
}

/** Name the zone of labels that are hours. @param {Chart} chart */
function zoneOf({ moments }) {
  if (spanOf(moments) > SHORT_S) return [];
  const named = element("span", zone());
  named.className = "muted";
  return [named];
}

/** @param {Date[]} moments */
function spanOf(moments) {
  return moments.length > 1 ? (moments[moments.length - 1].getTime() - moments[0].getTime()) / 1000 : 0;
}

/**
 * @param {string} name
 * @param {number | null | undefined} value
 * @param {(value: number) => string} write
 */
function markOf(name, value, write) {
  const mark = element("span");
  mark.className = "mark";
  const figure = element("span", value === null || value === undefined ? "" : write(value));
  figure.className = "muted";
  mark.append(element("span", name), " ", figure);
  return mark;
}

/**
 * @param {HTMLElement} figure
 * @param {Chart} chart
 * @param {HTMLElement[]} marks the legend
 */
function optionsOf(figure, chart, marks) {
  const { moments, lines, write, stacked } = chart;
  const style = getComputedStyle(figure);
  const probe = element("span");
  probe.className = "chart-lines";
  figure.append(probe);
  const grid = { stroke: getComputedStyle(probe).color, width: 1 };
  probe.remove();
  const font = `11px ${style.fontFamily}`;
  const axis = { stroke: style.color, font, grid, ticks: { show: false } };
  const spanS = spanOf(moments);
  const bars = stacked && uPlot.paths.bars ? uPlot.paths.bars({ size: [0.72, 36], radius: 0.08 }) : undefined;
  return /** @type {any} */ ({
    width: figure.clientWidth || 320,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: !stacked }, drag: { setScale: false } },
    padding: [12, 4, 0, 0],
    scales: { x: { range: stacked ? padded(moments) : undefined }, y: { range: rangeOf(chart) } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, space: 64, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((each) => timeOf(each, spanS, at.length > 1 ? at[1] - at[0] : HOUR_S)) },
      { ...axis, size: 64, space: 36, values: (/** @type {any} */ _, /** @type {number[]} */ at) => different(at.map(write)) },
    ],
    series: [
      {},
      // The topmost sum is drawn first, so that what lies below stays in front of it.
      ...inOrder(lines.length, stacked).map((index) => {
        const colour = getComputedStyle(marks[index]).getPropertyValue("border-left-color");
        return stacked
          ? { stroke: colour, fill: colour, width: 0, paths: bars, points: { show: false } }
          : { stroke: colour, width: 2, points: { show: false, fill: colour, filter: () => aloneIn(lines[index].values) } };
      }),
    ],
    hooks: { setCursor: [(/** @type {any} */ plot) => showAt(plot.cursor.idx, chart, marks)] },
  });
}

/**
 * Return where a value has no neighbour: it is drawn as a point, as no line goes through it.
 * @param {(number | null)[]} values
 */
function aloneIn(values) {
  const has = (/** @type {number} */ at) => (values[at] ?? null) !== null;
  return [...values.keys()].filter((at) => has(at) && !has(at - 1) && !has(at + 1));
}

/**
 * Leave out labels that say the same as the one before: small values are rounded.
 * @param {string[]} labels
 */
function different(labels) {
  return labels.map((label, index) => (label === labels[index - 1] ? "" : label));
}

/** @param {Chart} chart */
function dataOf({ moments, lines, stacked }) {
  const at = moments.map((moment) => moment.getTime() / 1000);
  const values = lines.map((line) => line.values);
  if (!stacked) return /** @type {any} */ ([at, ...values]);
  const sums = values.map((_, index) => at.map((_, moment) => values.slice(0, index + 1).reduce((sum, each) => sum + (each[moment] ?? 0), 0)));
  return /** @type {any} */ ([at, ...inOrder(lines.length, true).map((index) => sums[index])]);
}

/**
 * @param {number} count
 * @param {boolean | undefined} isReversed
 */
function inOrder(count, isReversed) {
  const all = [...Array(count).keys()];
  return isReversed ? all.reverse() : all;
}

/**
 * Show the values under the cursor in the legend; the last ones without it.
 * @param {number | null} index
 * @param {Chart} chart
 * @param {HTMLElement[]} marks
 */
function showAt(index, { lines, write }, marks) {
  lines.forEach(({ values }, line) => {
    const value = index === null || index === undefined ? lastOf(values) : values[index];
    const place = marks[line].lastElementChild;
    if (place) place.textContent = value === null || value === undefined ? "–" : write(value);
  });
}

/**
 * Return room for half a bar at both ends.
 * @param {Date[]} moments
 */
function padded(moments) {
  const at = moments.map((moment) => moment.getTime() / 1000);
  const step = at.length > 1 ? at[1] - at[0] : HOUR_S;
  return [at[0] - step / 2, at[at.length - 1] + step / 2];
}

/** @param {Chart} chart */
function rangeOf(chart) {
  return (/** @type {any} */ _, /** @type {number} */ _low, /** @type {number} */ high) => [0, chart.top ?? (high > 0 ? high * 1.08 : 1)];
}

/**
 * @param {number} second
 * @param {number} spanS
 * @param {number} stepS between two labels: below an hour they differ by minutes
 */
function timeOf(second, spanS, stepS) {
  const at = new Date(second * 1000);
  return spanS <= SHORT_S
    ? at.toLocaleTimeString(undefined, stepS < HOUR_S ? { timeStyle: "short" } : { hour: "numeric" })
    : at.toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** @param {Chart} chart */
function inWords({ title, lines, write }) {
  const parts = lines.map(({ name, values }) => {
    const seen = /** @type {number[]} */ (values.filter((value) => value !== null));
    if (!seen.length) return `${name}: nothing yet`;
    return `${name}: now ${write(seen[seen.length - 1])}, least ${write(Math.min(...seen))}, most ${write(Math.max(...seen))}`;
  });
  return `${title}. ${parts.join(". ")}.`;
}

/** @param {(number | null)[]} values */
function lastOf(values) {
  return values.findLast((value) => value !== null);
}
