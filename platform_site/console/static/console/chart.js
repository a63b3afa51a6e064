// @ts-check
/** Line charts in SVG, with a text alternative for screen readers. */

import { element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 100;
const LINES = ["first", "second"];

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {(number | null)[]} values one a moment; null is a gap
 */
/**
 * @typedef {object} Chart
 * @property {string} title
 * @property {Date[]} moments oldest first
 * @property {Line[]} lines at most two
 * @property {(value: number) => string} write
 * @property {number} [top] of the scale; else the highest value's
 */

/**
 * Draw a chart into a figure.
 * @param {HTMLElement} figure
 * @param {Chart} chart
 */
export function draw(figure, chart) {
  const top = chart.top ?? ceiling(Math.max(0, ...chart.lines.flatMap(({ values }) => known(values))));
  figure.replaceChildren(caption(chart, top), picture(chart, top || 1), span(chart.moments));
}

/**
 * @param {Chart} chart
 * @param {number} top
 */
function caption({ title, lines, write }, top) {
  const made = element("figcaption");
  made.append(element("strong", title));
  lines.forEach(({ name, values }, index) => {
    const latest = known(values).at(-1);
    const mark = element("span", latest === undefined ? name : `${name} ${write(latest)}`);
    mark.className = index ? "mark dashed" : "mark";
    made.append(mark);
  });
  if (top) made.append(element("span", `scale to ${write(top)}`));
  return made;
}

/**
 * @param {Chart} chart
 * @param {number} top
 */
function picture(chart, top) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  svg.setAttribute("aria-label", inWords(chart));
  for (const share of [0, 0.5, 1]) {
    const y = HEIGHT * share;
    svg.append(shape("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y }));
  }
  chart.lines.forEach(({ values }, index) => {
    svg.append(shape("path", { class: `line ${LINES[index]}`, d: path(values, top) }));
  });
  return svg;
}

/**
 * @param {(number | null)[]} values
 * @param {number} top
 */
function path(values, top) {
  const step = WIDTH / Math.max(1, values.length - 1);
  let isDrawing = false;
  return values
    .map((value, index) => {
      if (value === null) {
        isDrawing = false;
        return "";
      }
      const point = `${(index * step).toFixed(1)} ${(HEIGHT * (1 - Math.min(1, value / top))).toFixed(1)}`;
      // A lone value is drawn as a dot's width of line.
      const drawn = isDrawing ? `L${point}` : `M${point}h0.01`;
      isDrawing = true;
      return drawn;
    })
    .join("");
}

/** @param {Date[]} moments */
function span(moments) {
  const made = element("p");
  made.className = "span";
  const [from, to] = [moments[0], moments.at(-1)];
  if (!from || !to) return made;
  const isShort = to.getTime() - from.getTime() < 36 * 3600 * 1000;
  const options = isShort
    ? /** @type {const} */ ({ timeStyle: "short" })
    : /** @type {const} */ ({ dateStyle: "medium" });
  made.append(
    ...[from, to].map((at) =>
      element("span", isShort ? at.toLocaleTimeString(undefined, options) : at.toLocaleDateString(undefined, options)),
    ),
  );
  return made;
}

/** @param {Chart} chart */
function inWords({ title, lines, write }) {
  const parts = lines.map(({ name, values }) => {
    const seen = known(values);
    if (!seen.length) return `${name}: nothing yet`;
    return `${name}: now ${write(seen[seen.length - 1])}, least ${write(Math.min(...seen))}, most ${write(Math.max(...seen))}`;
  });
  return `${title}. ${parts.join(". ")}.`;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 */
function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** @param {(number | null)[]} values */
function known(values) {
  return /** @type {number[]} */ (values.filter((value) => value !== null));
}

/**
 * Return the next round number: 1, 2 or 5 times a power of ten.
 * @param {number} value
 */
function ceiling(value) {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((each) => each * power >= value) ?? 10;
  return step * power;
}
