// The page Method: a card for each, its options, and a comparison on this table.
import { BUSY, api, choice, choices, field, figure, h, here, known, later, methodName, notSaved, note, number, numberOf, onward, problem, say, scrolling, showMistakes, status, t, tick } from "./dom.js";
import { bars } from "./charts.js";

const COLUMNS = ["status", "safe", "gap", "untouched_pct", "hidden_pct", "deviation_pct", "interval_pct", "range_pct", "range_to_level", "seconds", "note"];

export async function show(view) {
  const [state, offered] = await Promise.all([api("GET", here), choices()]);
  const { job } = state;
  const top = h("div");
  let name = job.method?.name ?? offered.methods[0].name;
  let controls = new Map();
  const options = h("div", { class: "fields" });
  const weights = choice(offered.weights.map((key) => [key, known(`weights.${key}`, key)]), job.method?.weights ?? "table");
  const read = () => {
    const kept = job.method?.name === name ? { ...job.method } : {};
    const out = { ...kept, name, weights: weights.value === "table" ? null : weights.value };
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
    } catch (error) { notSaved(view, top, error); }
  });
  const draw = (values) => {
    const method = offered.methods.find((each) => each.name === name) ?? { options: [] };
    controls = new Map(method.options.map((option) => [option.key, controlOf(option, values[option.key])]));
    for (const control of controls.values()) control.addEventListener(control.tagName === "INPUT" && control.type !== "checkbox" ? "input" : "change", changed);
    options.replaceChildren(...method.options.map((option) => {
      const control = controls.get(option.key);
      return field(known(`option.${option.key}`, option.key), control, { path: ["method", option.key], check: option.kind === "tick", help: known(`option.${option.key}_help`, option.help) });
    }), field(t("option.weights"), weights, { help: t("option.weights_help"), path: ["method", "weights"] }));
  };
  weights.addEventListener("change", changed);
  const cards = h("fieldset", { class: "cards" }, h("legend", { class: "visually-hidden" }, t("method.choose")), offered.methods.map((method) => {
    const key = method.name;
    const radio = h("input", { type: "radio", name: "method", value: key, checked: key === name });
    radio.addEventListener("change", () => { name = key; draw({}); changed(); });
    return h("label", {}, h("span", { class: "name" }, radio, methodName(key, offered.methods)), h("p", {}, known(`method.${key}.publishes`, method.publishes)),
      h("p", {}, h("strong", {}, `${t("method.when")}: `), known(`method.${key}.when`, method.choose)));
  }));
  draw(job.method ?? {});
  view.append(top, cards, h("section", { class: "card" }, h("h2", {}, t("method.options")), h("p", { class: "help" }, t("method.options_help")), options),
    comparison(state, offered.methods), h("div", { class: "row" }, onward("protect")));
}

function controlOf(option, value) {
  if (option.kind === "tick") return tick(value);
  if (option.kind === "choice") {
    const usual = option.default === null ? t("app.default_none") : `${t("app.default")}: ${known(`value.${option.default}`, option.default)}`;
    return choice([["", usual], ...option.choices.map((key) => [key, known(`value.${key}`, key)])], value ?? "");
  }
  return number(value, option.default === null ? {} : { placeholder: `${t("app.default")}: ${option.default}` });
}

// ---------------------------------------------------------------- the comparison

function comparison(state, methods) {
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
      const busy = BUSY.includes(work.state);
      const phase = [...work.events].reverse().find((event) => event.phase)?.phase;
      const words = !phase ? "" : methods.some((method) => method.name === phase) ? methodName(phase, methods) : known(`phase.${phase}`, phase);
      said.replaceChildren(busy ? note("", h("p", { class: "busy" }, `${t("method.under_way")} ${words || t(`state.${work.state}`)} (${figure(work.seconds, 0)} s)`)) : "");
      run.disabled = busy;
      stop.hidden = !busy;
      const last = work.events.at(-1) ?? {};
      if (!busy && last.error) said.replaceChildren(problem(last.error));
      if (last.result?.rows) draw(result, last.result.rows, methods);
      if (!busy) return;
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
  box.append(h("div", { class: "row" }, limitField), h("div", { class: "row" }, run, stop), said, result);
  follow().catch((error) => said.replaceChildren(problem(error)));
  return box;
}

function draw(box, rows, methods) {
  const shown = (row, key) => {
    if (key === "safe") return row.safe === null ? "–" : row.safe ? t("app.yes") : t("app.no");
    if (key === "status") return status(row.status);
    if (key === "note") return String(row.note ?? "");
    if (key === "gap") return row.gap === null ? "–" : figure(100 * row.gap, 2);
    return figure(row[key], 2);
  };
  const words = (key) => key === "status" || key === "safe" || key === "note";
  const safe = rows.filter((row) => row.safe && row.untouched_pct !== null);
  const pictures = !safe.length ? h("p", { class: "quiet" }, t("method.compare_none")) : h("div", { class: "two wide" },
    h("figure", {}, h("figcaption", {}, t("compare.picture_untouched")), bars(safe.map((row) => [methodName(row.method, methods), row.untouched_pct, `${figure(row.untouched_pct)} %`]), { most: 100 })),
    h("figure", {}, h("figcaption", {}, t("compare.picture_deviation")), bars(safe.map((row) => [methodName(row.method, methods), row.deviation_pct ?? 0, `${figure(row.deviation_pct, 1)} %`]), { second: true })),
    h("figure", {}, h("figcaption", {}, t("compare.picture_range")), bars(safe.map((row) => [methodName(row.method, methods), row.range_pct ?? 0, row.range_pct === null ? "–" : `${figure(row.range_pct, 0)} %`]), { second: true })),
    h("figure", {}, h("figcaption", {}, t("compare.picture_seconds")), bars(safe.map((row) => [methodName(row.method, methods), row.seconds ?? 0, `${figure(row.seconds, 1)} s`]))));
  const late = rows.filter((row) => !row.safe && row.status === "time_limit");
  const more = safe.length && late.length ? note("warn", h("p", {}, t("method.compare_late", { methods: late.map((row) => methodName(row.method, methods)).join(", ") }))) : "";
  box.replaceChildren(h("h3", {}, t("method.compare_result")), more, pictures,
    scrolling(t("method.compare_result"), {}, h("table", { class: "plain compact", id: "comparison" },
      h("thead", {}, h("tr", {}, ["method", ...COLUMNS].map((key) => h("th", { scope: "col", class: key === "method" || words(key) ? null : "number" }, t(`compare.${key}`))))),
      h("tbody", {}, rows.map((row) => h("tr", { class: row.safe ? null : "quiet" }, h("th", { scope: "row" }, methodName(row.method, methods)), COLUMNS.map((key) => h("td", { class: key === "note" ? "remark" : words(key) ? null : "number" }, shown(row, key)))))))));
}
