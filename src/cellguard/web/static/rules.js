// The page Rules: each change is saved and counted at once.
import { api, choice, field, h, here, later, note, number, numberOf, page, problem, say, showMistakes, t, text, tick } from "./dom.js";
import { bars } from "./charts.js";
import { tableView } from "./tableview.js";

const KEYS = {
  p_percent: ["p", "coalition"], dominance: ["n", "k"], prior_posterior: ["p", "q", "coalition"], min_frequency: ["n", "percent"],
  zero: ["upper"], request: ["first", "second", "min_frequency", "percent"], manual: ["percent"], a_priori: ["file", "percent"],
};
const USUAL = { p_percent: { p: 10 }, dominance: { n: 1, k: 85 }, prior_posterior: { p: 10, q: 50 }, min_frequency: { n: 3, percent: 10 }, zero: { upper: 1 }, request: { first: 10 } };

export async function show(view) {
  const state = await api("GET", here);
  if (!state.job.data && !state.job.tables) { view.append(note("", h("p", {}, t("app.first_data"), " ", h("a", { href: page("data") }, t("step.data"))))); return; }
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
    } catch (error) {
      if (error.mistakes) { showMistakes(view, top, error.mistakes); say(t("app.not_saved")); } else top.replaceChildren(problem(error));
    }
  });
  const add = (entry, focus) => {
    const rule = oneRule(entry, changed, () => { rules.splice(rules.indexOf(rule), 1); rule.box.remove(); changed(); });
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
    h("div", { class: "row" }, h("a", { class: "button main", href: page("method") }, `${t("app.next")}: ${t("step.method")}`)));
  if (state.mistakes.length) showMistakes(view, top, state.mistakes);
  else await recount(counts, cells).catch((error) => counts.append(problem(error)));
}

function oneRule(entry, changed, remove) {
  let k = 0;
  const kinds = Object.keys(KEYS).filter((key) => !["manual", "a_priori"].includes(key) || key === entry.rule);
  const kind = choice(kinds.map((key) => [key, t(`rule.${key}.name`)]), entry.rule);
  const help = h("p", { class: "help" });
  const inner = h("div", { class: "fields" });
  const legend = h("legend");
  const box = h("fieldset", { class: "rule" }, legend, field(t("rules.kind"), kind), help, inner, h("p", { class: "mistake", hidden: true }),
    h("div", { class: "row" }, h("button", { type: "button", class: "small danger", onclick: remove }, t("app.remove"))));
  let controls = new Map();
  const draw = (values) => {
    help.textContent = t(`rule.${kind.value}.help`);
    legend.textContent = t(`rule.${kind.value}.name`);
    controls = new Map(KEYS[kind.value].map((key) => [key, key === "file" ? text(values[key]) : number(values[key])]));
    inner.replaceChildren(...[...controls].map(([key, control]) => {
      control.addEventListener("input", changed);
      const made = field(t(`rule_key.${key}`), control, { path: ["rules", k, key] });
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
  box.replaceChildren(h("h2", {}, t("rules.counts")), h("div", { class: "figures" },
    h("div", {}, h("div", { class: "big", id: "sensitive" }, found.sensitive.toLocaleString()), t("rules.sensitive")),
    h("div", {}, h("div", { class: "big" }, found.cells.toLocaleString()), t("rules.cells"))),
  h("h3", {}, t("rules.by_rule")), bars(found.rules.map((rule) => [rule.name, rule.cells, rule.cells.toLocaleString()]), { most: Math.max(found.sensitive, 1) }),
  h("h3", {}, t("rules.by_dimension")), ...found.dimensions.filter((d) => d.codes.length).map((d) => h("details", {}, h("summary", {}, d.name), bars(d.codes.map(([code, n]) => [code, n, n.toLocaleString()])))));
  cells.replaceChildren(h("h2", {}, t("rules.see")), h("p", { class: "help" }, t("rules.see_help")));
  await tableView(cells, { release: null, decisions: false });
}
