// The card "Over time" of the page Protect: earlier releases with which a release is protected, and derived statistics.
import { choice, field, h, number, numberOf, t, text, tick } from "./dom.js";

const KINDS = ["mean", "ratio", "share", "growth", "index", "total"];

/** "region=A, size=small" -> {region: "A", size: "small"} */
const codesOf = (control) => Object.fromEntries(control.value.split(",").map((part) => part.split("=").map((word) => word.trim())).filter(([name, code]) => name && code));
const written = (codes) => Object.entries(codes ?? {}).map(([name, code]) => `${name}=${Array.isArray(code) ? code[0] : code}`).join(", ");
/** Lists of codes are kept as the job has them unless the text was changed. */
const kept = (control, before) => (control.value.trim() === written(before) ? before ?? null : codesOf(control));

/** A section without what is not said; null if nothing is. */
function given(section) {
  const told = Object.entries(section).filter(([, value]) => value !== null && value !== "" && value !== false);
  return told.length ? Object.fromEntries(told) : null;
}

export function overTime(job, changed) {
  const told = job.ledger ?? {};
  const period = text(told.period, { id: "period" });
  const population = text(told.population);
  const additive = tick(told.additive);
  const revision = number(told.revision_percent);
  const prior = number(told.prior_percent);
  const rows = [];
  const list = h("div", { id: "derived" });
  const ledger = (further) => given({
    ...told, period: period.value.trim(), population: population.value.trim(), additive: additive.checked,
    revision_percent: numberOf(revision), prior_percent: numberOf(prior), ...further,
  });
  const derived = () => rows.map((row) => row.read());
  const add = (one) => {
    const row = statistic(one, rows.length, () => { rows.splice(rows.indexOf(row), 1); row.box.remove(); changed(); }, changed);
    rows.push(row);
    list.append(row.box);
  };
  for (const one of job.derived ?? []) add(one);
  for (const control of [period, population, additive, revision, prior]) control.addEventListener("input", changed);
  const more = h("button", { type: "button", class: "small", id: "add-derived", onclick: () => add({}) }, t("time.add"));
  const box = h("section", { class: "card" }, h("h2", {}, t("time.title")), h("p", { class: "help" }, t("time.help")), h("div", { class: "fields" },
    field(t("time.period"), period, { help: t("time.period_help"), path: ["ledger", "period"] }), field(t("time.population"), population, { help: t("time.population_help"), path: ["ledger", "population"] }),
    field(t("time.additive"), additive, { check: true, help: t("time.additive_help"), path: ["ledger", "additive"] }),
    field(t("time.revision"), revision, { help: t("time.revision_help"), path: ["ledger", "revision_percent"] }), field(t("time.prior"), prior, { help: t("time.prior_help"), path: ["ledger", "prior_percent"] })),
  h("h3", {}, t("time.derived")), h("p", { class: "help" }, t("time.derived_help")), list, more);
  return { box, ledger, derived };
}

function statistic(one, place, remove, changed) {
  const name = text(one.name);
  const kind = choice(KINDS.map((key) => [key, t(`time.kind_${key}`)]), one.kind ?? "mean");
  const of = text(written(one.of));
  const by = text(written(one.by));
  const period = text(one.period);
  const decimals = number(one.decimals ?? 1);
  for (const control of [name, kind, of, by, period, decimals]) control.addEventListener("input", () => { if (name.value.trim()) changed(); });
  const path = (key) => ["derived", String(place), key];
  const box = h("div", { class: "fields", role: "group", "aria-label": t("time.derived") },
    field(t("time.name"), name, { path: path("name") }), field(t("time.kind"), kind, { path: path("kind") }), field(t("time.of"), of, { help: t("time.of_help"), path: path("of") }),
    field(t("time.by"), by, { help: t("time.by_help"), path: path("by") }), field(t("time.base"), period, { help: t("time.base_help"), path: path("period") }), field(t("time.decimals"), decimals, { path: path("decimals") }),
    h("button", { type: "button", class: "small", onclick: remove }, t("time.remove")));
  const read = () => ({
    ...one, name: name.value.trim(), kind: kind.value, of: kept(of, one.of), by: kept(by, one.by), period: period.value.trim() || null, decimals: numberOf(decimals),
  });
  return { box, read };
}
