// Pictures as SVG: a curve, bars, and the range of a cell. Each has a text that says the same.
import { figure, h, svg, t } from "./dom.js";

/** Bars with names and figures: entries are [name, value, shown?]. */
export function bars(entries, { most = null, second = false } = {}) {
  const top = most ?? Math.max(...entries.map(([, value]) => value), 1e-9);
  return h("div", { class: "bars" }, entries.flatMap(([name, value, shown]) => {
    const bar = h("div", { class: second ? "bar second" : "bar" });
    bar.style.width = `${Math.max(0, Math.min(100, (100 * value) / top))}%`;
    return [h("span", { class: "name" }, name), h("div", { class: "of" }, bar), h("span", { class: "number" }, shown ?? figure(value))];
  }));
}

/** Figures between two ends that are easy to read: multiples of 1, 2 or 5. */
function marks(least, most, wanted = 4) {
  const rough = (most - least) / wanted || Math.abs(most) || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((each) => each >= rough);
  const out = [];
  for (let value = Math.ceil(least / step) * step; value <= most + step * 1e-9; value += step) out.push(value);
  return out;
}

const short = new Intl.NumberFormat(document.documentElement.lang, { notation: "compact", maximumSignificantDigits: 4 });

/** Best cost and proven bound over time: points are {t, best, bound}. */
export function curve(points) {
  const wide = 760, high = 260, left = 64, right = 112, low = 34, up = 14;
  const picture = svg("svg", { class: "picture", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": t("protect.curve") });
  const known = points.filter((p) => Number.isFinite(p.best));
  if (!known.length) return picture;
  const first = known[0].t, last = Math.max(known.at(-1).t, first + 0.1);
  const values = known.flatMap((p) => [p.best, p.bound]).filter((v) => Number.isFinite(v));
  const margin = 0.08 * (Math.max(...values) - Math.min(...values)) || 0.05 * Math.abs(values[0]) || 1;
  const most = Math.max(...values) + margin, least = Math.max(Math.min(0, ...values), Math.min(...values) - margin);
  const x = (time) => left + ((wide - left - right) * (time - first)) / (last - first);
  const y = (value) => high - low - ((high - low - up) * (value - least)) / (most - least);
  for (const value of marks(least, most)) picture.append(svg("line", { class: "grid-line", x1: left, x2: wide - right, y1: y(value), y2: y(value) }), svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, short.format(value)));
  for (const time of marks(first, last, 5)) picture.append(svg("text", { x: x(time), y: high - 12, "text-anchor": "middle" }, `${figure(time)} s`));
  picture.append(svg("line", { class: "axis", x1: left, y1: high - low, x2: wide - right, y2: high - low }));
  const ends = [];
  for (const name of ["best", "bound"]) {
    const own = known.filter((p) => Number.isFinite(p[name]));
    if (!own.length) continue;
    const steps = own.map((p, k) => (k ? `H${x(p.t)}V${y(p[name])}` : `M${x(p.t)},${y(p[name])}`)).join("");
    picture.append(svg("path", { class: name, d: `${steps}H${x(last)}` }));
    ends.push([name, y(own.at(-1)[name])]);
  }
  if (ends.length > 1 && ends[1][1] - ends[0][1] < 14) { const middle = (ends[0][1] + ends[1][1]) / 2; ends[0][1] = middle - 7; ends[1][1] = middle + 7; }
  for (const [name, place] of ends) picture.append(svg("text", { class: `${name}-name`, x: wide - right + 6, y: place + 4 }, t(`protect.${name}_short`)));
  return picture;
}

/** The range of a cell, its level around the truth if it has one, and the truth; every mark with its figure. */
export function rangePicture({ lowest, highest, lower_level: lower, upper_level: upper }, truth) {
  const open = 1.5 * Math.max(lower ?? 0, upper ?? 0, Math.abs(truth) / 4, 1);
  const low = lowest ?? truth - open, high = highest ?? truth + open;
  const from = truth - (lower ?? 0), to = truth + (upper ?? 0);
  const least = Math.min(low, from), most = Math.max(high, to);
  const x = (value) => 12 + (296 * (value - least)) / Math.max(most - least, 1e-9);
  const shown = (value) => figure(value, Math.abs(value) < 100 ? 2 : 0);
  const asked = lower !== undefined || upper !== undefined;
  const words = `${t("look.range")}: ${lowest === null ? "−∞" : shown(low)} – ${highest === null ? "∞" : shown(high)}. ${asked ? `${t("look.range_level")}: ${shown(from)} – ${shown(to)}. ` : ""}${t("look.true")}: ${shown(truth)}.`;
  const picture = svg("svg", { class: "picture", viewBox: "0 0 320 58", role: "img", "aria-label": words });
  picture.append(svg("rect", { class: "range", x: x(low), y: 18, width: Math.max(2, x(high) - x(low)), height: 16, rx: 2 }),
    asked ? svg("rect", { class: "level", x: x(from), y: 12, width: Math.max(3, x(to) - x(from)), height: 28, rx: 2 }) : "",
    svg("line", { class: "truth", x1: x(truth), x2: x(truth), y1: 8, y2: 44 }),
    svg("text", { x: 12, y: 56 }, lowest === null ? "…" : shown(low)), svg("text", { x: 308, y: 56, "text-anchor": "end" }, highest === null ? "…" : shown(high)));
  const key = (kind, name, value) => h("li", {}, h("span", { class: `mark ${kind}`, "aria-hidden": "true" }), h("span", {}, name), h("span", { class: "number" }, value));
  return h("div", {}, picture, h("ul", { class: "keys" }, key("range", t("look.range_key"), `${lowest === null ? "−∞" : shown(low)} – ${highest === null ? "∞" : shown(high)}`),
    asked ? key("level", t("look.range_level"), `${shown(from)} – ${shown(to)}`) : "", key("truth", t("look.true"), shown(truth))));
}
