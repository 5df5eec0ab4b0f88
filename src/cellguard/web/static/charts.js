// Pictures as SVG: a curve, bars, and the range of a cell. Each has a text that says the same.
import { figure, h, svg, t } from "./dom.js";

/** Bars with names and figures: entries are [name, value, shown?]. */
export function bars(entries, { most = null, second = false } = {}) {
  const top = most ?? Math.max(...entries.map(([, value]) => value), 1);
  return h("div", { class: "bars" }, entries.flatMap(([name, value, shown]) => {
    const bar = h("div", { class: second ? "bar second" : "bar" });
    bar.style.width = `${Math.max(0, Math.min(100, (100 * value) / top))}%`;
    return [h("span", { class: "name" }, name), h("div", { class: "of" }, bar), h("span", {}, shown ?? figure(value))];
  }));
}

/** Best cost and proven bound over time: points are {t, best, bound}. */
export function curve(points) {
  const wide = 640, high = 220, left = 64, low = 26;
  const picture = svg("svg", { class: "picture", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": t("protect.curve") });
  const known = points.filter((p) => Number.isFinite(p.best));
  if (!known.length) return picture;
  const last = Math.max(...points.map((p) => p.t)), first = known[0].t;
  const values = known.flatMap((p) => [p.best, p.bound]).filter((v) => Number.isFinite(v));
  const most = Math.max(...values), least = Math.min(0, ...values);
  const x = (time) => left + ((wide - left - 10) * (time - first)) / Math.max(last - first, 1e-9);
  const y = (value) => high - low - ((high - low - 10) * (value - least)) / Math.max(most - least, 1e-9);
  picture.append(svg("line", { class: "axis", x1: left, y1: high - low, x2: wide, y2: high - low }), svg("line", { class: "axis", x1: left, y1: 0, x2: left, y2: high - low }));
  for (const value of [least, (least + most) / 2, most]) picture.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, figure(value, 0)));
  picture.append(svg("text", { x: left, y: high - 6 }, `${figure(first)} s`), svg("text", { x: wide - 4, y: high - 6, "text-anchor": "end" }, `${figure(last)} s`));
  for (const name of ["best", "bound"]) {
    const own = known.filter((p) => Number.isFinite(p[name]));
    if (!own.length) continue;
    const steps = own.map((p, k) => (k ? `H${x(p.t)}V${y(p[name])}` : `M${x(p.t)},${y(p[name])}`)).join("");
    picture.append(svg("path", { class: name, d: `${steps}H${x(last)}` }));
  }
  return picture;
}

/** The range of a cell, its level around the truth, and the truth. */
export function rangePicture({ lowest, highest, lower_level: lower, upper_level: upper }, truth) {
  const low = lowest ?? truth - 2 * Math.max(lower ?? 0, 1), high = highest ?? truth + 2 * Math.max(upper ?? 0, 1);
  const least = Math.min(low, truth - (lower ?? 0)), most = Math.max(high, truth + (upper ?? 0));
  const x = (value) => 10 + (300 * (value - least)) / Math.max(most - least, 1e-9);
  const picture = svg("svg", { class: "picture", viewBox: "0 0 320 62", role: "img", "aria-label": t("look.range_picture") });
  picture.append(svg("rect", { class: "range", x: x(low), y: 14, width: Math.max(2, x(high) - x(low)), height: 18 }),
    svg("rect", { class: "level", x: x(truth - (lower ?? 0)), y: 10, width: Math.max(2, x(truth + (upper ?? 0)) - x(truth - (lower ?? 0))), height: 26 }),
    svg("line", { class: "truth", x1: x(truth), x2: x(truth), y1: 6, y2: 40 }),
    svg("text", { x: 10, y: 56 }, lowest === null ? "…" : figure(low, 2)), svg("text", { x: 310, y: 56, "text-anchor": "end" }, highest === null ? "…" : figure(high, 2)));
  return picture;
}
