// Two shapes in SVG: bars, one per thing, and lines over time.

import { contentWidth, h, s } from "./dom.js";
import { time } from "./format.js";

const HEIGHT = 150;
const LEFT = 62;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 22;
const BASE = HEIGHT - BOTTOM;

/** The width of a chart: two beside each other where there is room. */
export function chartWidth() {
  const all = contentWidth();
  return Math.floor(innerWidth <= 760 ? all - 30 : (all - 18) / 2 - 34);
}

/** A round number not below the value: 1, 2, 2.5 or 5 times a power of ten. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= value * 0.999);
}

const frame = (title, note, label, width, ...shapes) =>
  h("figure.chart", {}, h("figcaption", {}, title, note ? h("span", {}, note) : null),
    s("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label }, shapes));

function axis(top, unit, width) {
  return [0, 0.5, 1].map((part) => {
    const y = BASE - part * (BASE - TOP);
    return [s("line.grid", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y }), s("text.scale", { x: LEFT - 8, y: y + 4 }, unit(top * part))];
  });
}

const ends = (first, last, right) => [
  s("text.scale.first", { x: LEFT, y: HEIGHT - 5 }, first),
  right > LEFT + 130 ? s("text.scale", { x: right, y: HEIGHT - 5 }, last) : null,
];

/** Bars: each has `value`, `kind`, `title`, `key`, and perhaps `href`. */
export function bars({ title, note, unit, points, first, last }) {
  const width = chartWidth();
  if (!points.length) return h("figure.chart", {}, h("figcaption", {}, title), h("p.empty", {}, "Nothing yet."));
  const top = roundUp(Math.max(...points.map((each) => each.value)));
  const step = Math.min(34, (width - LEFT - RIGHT) / points.length);
  const own = Math.max(1, Math.min(24, step - (step > 4 ? 2 : 0.5)));
  const shapes = points.map((each, index) => {
    const height = Math.max(2, ((BASE - TOP) * Math.max(0, each.value)) / top);
    const place = { x: LEFT + index * step, y: BASE - height, width: own, height, rx: Math.min(2, own / 3) };
    const bar = s("rect", { ...place, class: each.kind }, s("title", {}, each.title));
    if (!each.href) return s("g", { "data-key": each.key }, bar);
    return s("a", { href: each.href, "data-key": each.key, tabindex: "-1", "aria-hidden": "true" }, bar);
  });
  const label = `${title}: ${points.length} bars, the highest ${unit(Math.max(...points.map((each) => each.value)))}`;
  const right = LEFT + (points.length - 1) * step + own;
  return frame(title, note, label, width, axis(top, unit, width), shapes, ends(first, last, right));
}

/** Lines over time: `series` are [kind, name, value of a point]; points have `at`. */
export function lines({ title, unit, points, series, now }) {
  const width = chartWidth();
  if (points.length < 2) return h("figure.chart", {}, h("figcaption", {}, title), h("p.empty", {}, "Nothing yet."));
  const highest = Math.max(...points.flatMap((point) => series.map(([, , value]) => value(point))));
  const top = roundUp(highest);
  const [from, to] = [points[0].at, points.at(-1).at];
  const x = (point) => LEFT + ((width - LEFT - RIGHT) * (point.at - from)) / Math.max(1, to - from);
  const y = (value) => BASE - ((BASE - TOP) * Math.max(0, value)) / top;
  const shapes = series.map(([kind, , value]) => {
    const way = points.map((point) => `${x(point).toFixed(1)} ${y(value(point)).toFixed(1)}`).join("L");
    const ground = `L${x(points.at(-1)).toFixed(1)} ${BASE}L${LEFT} ${BASE}Z`;
    return [s("path.area", { class: kind, d: `M${way}${ground}` }), s("path.line", { class: kind, d: `M${way}` })];
  });
  const key = series.length > 1 ? series.map(([kind, name]) => h("span.key", {}, h("i", { class: kind }), name)) : null;
  const label = `${title}: at most ${unit(highest)}`;
  return frame(title, key, label, width, axis(top, unit, width), shapes, ends(time(from, now), time(to, now), width - RIGHT));
}
