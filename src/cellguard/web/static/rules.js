// The page Rules: each change is saved and counted at once.
import { api, choice, choices, count, doFirst, field, h, here, known, later, notSaved, note, number, numberOf, onward, problem, said, say, scrolling, showMistakes, t, text, tick } from "./dom.js";
import { bars } from "./charts.js";
import { tableView } from "./tableview.js";

const BY_HAND = ["manual", "a_priori"];
const USUAL = { p_percent: { p: 10 }, dominance: { n: 1, k: 85 }, prior_posterior: { p: 10, q: 50 }, min_frequency: { n: 3, percent: 10 }, zero: { upper: 1 }, request: { first: 10 } };

export async function show(view) {
  const [state, offered] = await Promise.all([api("GET", here), choices()]);
  if (!state.job.data && !state.job.tables) { view.append(doFirst("app.first_data", "data")); return; }
  const top = h("div");
  const list = h("div");
  const rules = [];
  const counts = h("section", { class: "card", "aria-live": "polite" }, h("h2", {}, t("rules.counts")));
  const cells = h("section", { class: "card" }, h("h2", {}, t("rules.see")), h("p", { class: "help" }, t("rules.see_help")));
  const insiders = tick(state.job.insiders ?? true);
  const ratio = number(state.job.levels?.lower_ratio ?? "");
  const more = h("div", { class: "fields" }, field(t("rules.insiders"), insiders, { check: true, help: t("rules.insiders_help"), path: ["insiders"] }),
    field(t("rules.lower_ratio"), ratio, { help: t("rules.lower_ratio_help"), path: ["levels", "lower_ratio"] }));
  const levels = () => { const out = { ...(state.job.levels ?? {}), lower_ratio: numberOf(ratio) }; return Object.values(out).some((v) => v !== null) ? out : null; };
  const changed = later(async () => {
    rules.forEach((rule, k) => rule.number(k));
    const sections = { rules: rules.map((rule) => rule.read()), insiders: insiders.checked ? null : false, levels: levels() };
    try {
      const answer = await api("PUT", `${here}/job/rules`, { sections });
      showMistakes(view, top, answer.mistakes);
      say(t("app.saved"));
      if (!answer.mistakes.length) await recount(counts, cells);
    } catch (error) { notSaved(view, top, error); }
  });
  const add = (entry, focus) => {
    const rule = oneRule(offered.rules, entry, changed, () => { rules.splice(rules.indexOf(rule), 1); rule.box.remove(); changed(); });
    rules.push(rule);
    rule.number(rules.length - 1);
    list.append(rule.box);
    if (focus) { rule.box.querySelector("select").focus(); changed(); }
  };
  (state.job.rules ?? []).forEach((entry) => add(entry, false));
  insiders.addEventListener("change", changed);
  ratio.addEventListener("input", changed);
  const rulesField = h("div", { class: "field", "data-path": "rules" }, list, h("p", { class: "mistake", hidden: true }));
  view.append(top, h("div", { class: "two" }, h("section", { class: "card" }, rulesField, h("button", { type: "button", onclick: () => add({ rule: "min_frequency", ...USUAL.min_frequency }, true) }, t("rules.add")), h("hr"), more), counts), cells,
    h("div", { class: "row" }, onward("method")));
  if (state.mistakes.length) showMistakes(view, top, state.mistakes);
  else await recount(counts, cells).catch((error) => counts.append(problem(error)));
}

function oneRule(offered, entry, changed, remove) {
  let k = 0;
  const kinds = offered.map((rule) => rule.name).filter((key) => !BY_HAND.includes(key) || key === entry.rule);
  const named = (key) => known(`rule.${key}.name`, key);
  const kind = choice(kinds.map((key) => [key, named(key)]), entry.rule);
  const help = h("p", { class: "help" });
  const inner = h("div", { class: "fields" });
  const legend = h("legend");
  const box = h("fieldset", { class: "rule" }, legend, field(t("rules.kind"), kind), help, inner, h("p", { class: "mistake", hidden: true }),
    h("div", { class: "row" }, h("button", { type: "button", class: "small danger", onclick: remove }, t("app.remove"))));
  let controls = new Map();
  const draw = (values) => {
    const rule = offered.find((each) => each.name === kind.value);
    help.textContent = known(`rule.${kind.value}.help`, rule.help);
    legend.textContent = named(kind.value);
    controls = new Map(rule.keys.map(({ key, required }) => [key, key === "file" ? text(values[key]) : number(values[key], required ? {} : { placeholder: t("app.default") })]));
    inner.replaceChildren(...[...controls].map(([key, control]) => {
      control.addEventListener("input", changed);
      const made = field(known(`rule_key.${key}`, key), control, { help: known(`rule_key.${key}_help`, ""), path: ["rules", k, key] });
      made.key = key;
      return made;
    }));
  };
  draw(entry);
  kind.addEventListener("change", () => { draw(USUAL[kind.value] ?? {}); changed(); });
  const numbered = (place) => {
    k = place;
    box.dataset.path = `rules/${k}`;
    for (const made of inner.children) made.dataset.path = `rules/${k}/${made.key}`;
  };
  const read = () => {
    const kept = entry.rule === kind.value ? { ...entry } : {};
    for (const [key, control] of controls) kept[key] = key === "file" ? control.value.trim() || null : numberOf(control);
    return { ...kept, rule: kind.value };
  };
  return { box, read, number: numbered };
}

async function recount(box, cells) {
  const found = await api("POST", `${here}/counts`, { sections: {} });
  const opened = new Set([...box.querySelectorAll("details[open]")].map((each) => each.dataset.name));
  const first = !box.querySelector("details");
  const places = found.dimensions.filter((d) => d.codes.length);
  box.replaceChildren(h("h2", {}, t("rules.counts")), h("div", { class: "figures" },
    h("div", {}, h("div", { class: "big", id: "sensitive" }, count(found.sensitive)), t("rules.sensitive")),
    h("div", {}, h("div", { class: "big" }, count(found.cells)), t("rules.cells"))),
  found.sensitive ? "" : note("warn", h("p", {}, t("rules.none"))),
  h("h3", {}, t("rules.by_rule")), bars(found.rules.map((rule) => [said(rule.name), rule.cells, count(rule.cells)]), { most: Math.max(found.sensitive, 1) }),
  h("h3", {}, t("rules.by_dimension")), h("p", { class: "help" }, t("rules.by_dimension_help")),
  ...places.map((d, k) => h("details", { "data-name": d.name, open: first ? k === 0 : opened.has(d.name) }, h("summary", {}, d.name), byCode(d, found.rules))));
  cells.replaceChildren(h("h2", {}, t("rules.see")), h("p", { class: "help" }, t("rules.see_help")));
  await tableView(cells, { release: null, decisions: false });
}

function byCode(dimension, rules) {
  return scrolling(dimension.name, {}, h("table", { class: "plain compact" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, dimension.name), h("th", { scope: "col", class: "number" }, t("rules.sensitive")), rules.map((rule) => h("th", { scope: "col", class: "number" }, said(rule.name))))),
    h("tbody", {}, dimension.codes.map(([code, n, each]) => h("tr", {}, h("th", { scope: "row" }, code), h("td", { class: "number" }, count(n)), each.map((m) => h("td", { class: "number" }, m ? count(m) : "–")))))));
}
