// The page Method: five cards, their options, and a comparison on this table.
import { api, choice, field, figure, h, here, later, note, number, numberOf, page, problem, say, showMistakes, t, tick } from "./dom.js";
import { bars } from "./charts.js";

const METHODS = ["suppress", "intervals", "round", "perturb", "adjust"];
const OPTIONS = {
  suppress: { rounds: "number", search: ["heuristic", "auto", "exact"], gap: "number" },
  intervals: { position: ["narrowest", "random"], gap: "number" },
  round: { base: "number", step: "number", gap: "number" },
  perturb: { base: "number" },
  adjust: { norm: ["l1", "l2", "linf", "l12"], senses: ["key", "upper", "lower", "optimal"], surplus: "number", whole: "tick", repair: ["senses", "relations", "none"], gap: "number" },
};
const WEIGHTS = ["table", "unit", "inverse", "value", "sqrt", "log"];
const COLUMNS = ["status", "safe", "gap", "untouched_pct", "hidden_pct", "deviation_pct", "interval_pct", "range_pct", "range_to_level", "seconds", "note"];

export async function show(view) {
  const state = await api("GET", here);
  const job = state.job;
  const top = h("div");
  let name = job.method?.name ?? "suppress";
  let controls = new Map();
  const options = h("div", { class: "fields" });
  const weights = choice(WEIGHTS.map((key) => [key, t(`weights.${key}`)]), job.method?.weights ?? "table");
  const read = () => {
    const out = { name, weights: weights.value === "table" ? null : weights.value };
    for (const key of ["keep", "resist"]) if (job.method?.name === name && job.method[key] !== undefined) out[key] = job.method[key];
    for (const [key, control] of controls) out[key] = control.type === "checkbox" ? (control.checked || null) : control.tagName === "SELECT" ? control.value || null : numberOf(control);
    return out;
  };
  const changed = later(async () => {
    try {
      const sections = { method: read() };
      if (job.attack && job.method?.name !== name) sections.attack = null;
      const answer = await api("PUT", `${here}/job/method`, { sections });
      showMistakes(view, top, answer.mistakes.filter((m) => m.path[0] === "method"));
      say(t("app.saved"));
    } catch (error) {
      if (error.mistakes) { showMistakes(view, top, error.mistakes); say(t("app.not_saved")); } else top.replaceChildren(problem(error));
    }
  });
  const draw = (values) => {
    controls = new Map(Object.entries(OPTIONS[name]).map(([key, kind]) => [key, Array.isArray(kind)
      ? choice([["", t("app.default")], ...kind.map((value) => [value, value])], values[key] ?? "") : kind === "tick" ? tick(values[key]) : number(values[key])]));
    for (const control of controls.values()) control.addEventListener(control.tagName === "INPUT" && control.type !== "checkbox" ? "input" : "change", changed);
    options.replaceChildren(...[...controls].map(([key, control]) => field(t(`option.${key}`), control, { path: ["method", key], check: control.type === "checkbox", help: key === "whole" ? "" : t(`option.${key}_help`) })),
      field(t("option.weights"), weights, { help: t("option.weights_help"), path: ["method", "weights"] }));
  };
  weights.addEventListener("change", changed);
  const cards = h("fieldset", { class: "cards" }, h("legend", { class: "visually-hidden" }, t("method.choose")), METHODS.map((key) => {
    const radio = h("input", { type: "radio", name: "method", value: key, checked: key === name });
    radio.addEventListener("change", () => { name = key; draw({}); changed(); });
    return h("label", {}, h("span", { class: "name" }, radio, t(`method.${key}.name`)), h("p", {}, h("strong", {}, `${t("method.publishes")}: `), t(`method.${key}.publishes`)), h("p", {}, h("strong", {}, `${t("method.when")}: `), t(`method.${key}.when`)));
  }));
  draw(job.method ?? {});
  view.append(top, cards, h("section", { class: "card later" }, h("h2", {}, t("method.options")), h("p", { class: "help" }, t("method.options_help")), options),
    comparison(state), h("div", { class: "row" }, h("a", { class: "button main", href: page("protect") }, `${t("app.next")}: ${t("step.protect")}`)));
}

function comparison(state) {
  const said = h("div", { "aria-live": "polite" });
  const result = h("div");
  const limit = number(state.job.compare?.time_limit_s ?? 20);
  const limitField = field(t("method.compare_limit"), limit, { help: t("method.compare_limit_help"), path: ["compare", "time_limit_s"] });
  const box = h("section", { class: "card" }, h("h2", {}, t("method.compare")), h("p", { class: "help" }, t("method.compare_help")));
  const run = h("button", { type: "button", class: "main" }, t("method.compare_run"));
  const stop = h("button", { type: "button", class: "danger", hidden: true }, t("protect.stop"));
  const follow = async () => {
    for (;;) {
      const work = await api("GET", `${here}/work/compare`);
      const over = !["waiting", "running", "stopping"].includes(work.state);
      const phase = [...work.events].reverse().find((event) => event.phase)?.phase;
      const words = METHODS.includes(phase) ? t(`method.${phase}.name`) : phase ? t(`phase.${phase}`) : "";
      said.replaceChildren(over || work.state === "none" ? "" : note("", h("p", {}, `${t("method.under_way")} ${words || t(`state.${work.state}`)} (${figure(work.seconds, 0)} s)`)));
      run.disabled = !over && work.state !== "none";
      stop.hidden = !run.disabled;
      const last = work.events.at(-1) ?? {};
      if (over && last.error) said.replaceChildren(problem(last.error));
      if (last.result?.rows) draw(result, last.result.rows);
      if (over || work.state === "none") return;
      await new Promise((done) => setTimeout(done, 500));
    }
  };
  run.addEventListener("click", async () => {
    try {
      await api("POST", `${here}/work/compare`, { time_limit_s: numberOf(limit) });
      result.replaceChildren();
      showMistakes(box, said, []);
      await follow();
    } catch (error) {
      if (error.mistakes) showMistakes(box, said, error.mistakes); else said.replaceChildren(problem(error));
    }
  });
  stop.addEventListener("click", () => api("DELETE", `${here}/work/compare`));
  box.append(h("div", { class: "row end" }, limitField, run, stop), said, result);
  follow().catch((error) => said.replaceChildren(problem(error)));
  return box;
}

function draw(box, rows) {
  const shown = (row, key) => {
    if (key === "safe") return row.safe ? t("app.yes") : t("app.no");
    if (key === "status" || key === "note") return String(row[key] ?? "").replaceAll("_", " ");
    if (key === "gap") return row.gap === null ? "–" : figure(100 * row.gap, 2);
    return figure(row[key], 2);
  };
  const known = rows.filter((row) => row.untouched_pct !== null);
  box.replaceChildren(h("h3", {}, t("method.compare_result")),
    h("div", { class: "two" }, h("div", {}, h("p", { class: "help" }, t("compare.untouched_pct")), bars(known.map((row) => [t(`method.${row.method}.name`), row.untouched_pct, `${figure(row.untouched_pct)} %`]), { most: 100 })),
      h("div", {}, h("p", { class: "help" }, t("compare.deviation_pct")), bars(known.map((row) => [t(`method.${row.method}.name`), row.deviation_pct ?? 0, `${figure(row.deviation_pct, 2)} %`]), { second: true }))),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("method.compare_result") }, h("table", { class: "plain", id: "comparison" },
      h("thead", {}, h("tr", {}, ["method", ...COLUMNS].map((key) => h("th", { scope: "col" }, t(`compare.${key}`))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, t(`method.${row.method}.name`)), COLUMNS.map((key) => h("td", {}, shown(row, key)))))))));
}
