// The page Data: which files, which column is what, how codes add up, which tables.
import { api, choice, field, h, here, note, numberOf, onward, page, problem, said, say, scrolling, showMistakes, stacked, t, text, tick } from "./dom.js";
import { dimension } from "./dimensions.js";
import { chooser } from "./files.js";
import { linkedTables } from "./linked.js";
import { planCard } from "./plan.js";

const SINGLE = ["value", "holding", "weight", "shadow", "waiver", "request", "cost"];
const ROLES = ["", "dimension", "level", ...SINGLE];

export async function show(view, told = []) {
  const state = await api("GET", here);
  const { job } = state;
  const named = job.data?.file ?? job.data?.table;
  const tables = (job.tables ?? []).map((entry) => entry.file).filter(Boolean);
  const chosen = [...(named ? [named] : []), ...tables];
  const choosing = chooser(state, chosen, (lines) => show(view, lines));
  if (!named && !(job.tables ?? []).length) { view.replaceChildren(h("div", { class: "card" }, choosing), planCard(state)); return; }
  const again = h("details", { class: "card" }, h("summary", {}, t("data.another")), h("p", { class: "help" }, t("data.another_help")), choosing);
  const guessed = told.length ? note("", h("p", {}, h("strong", {}, t("data.told"))), h("ul", {}, told.map((line) => h("li", {}, line)))) : "";
  if (job.data?.table) {
    view.replaceChildren(h("section", { class: "card" }, h("h2", {}, named), h("p", {}, t("data.is_table")), onward("rules")), again, planCard(state));
    return;
  }
  const file = state.files.find((entry) => entry.relative === named);
  try {
    const looked = file ? await api("POST", `${here}/columns`, { file: file.name }) : { columns: [], rows: 0 };
    view.replaceChildren(guessed, form(state, looked, named), again, planCard(state));
  } catch (error) { view.replaceChildren(problem(error), again); }
}

// ---------------------------------------------------------------- the form

function form(state, looked, named) {
  const { job } = state;
  const top = h("div");
  const roles = new Map();
  const dims = h("div");
  const entries = new Map();
  const redraw = () => {
    const names = chosenDimensions(roles, job);
    for (const name of names) if (!entries.has(name)) entries.set(name, dimension({ state, looked }, name));
    dims.replaceChildren(...names.map((name) => entries.get(name).box));
  };
  const columns = columnTable(job, looked, roles, redraw);
  const options = optionFields(job);
  const tables = linkedTables(state, () => chosenDimensions(roles, job));
  const confirm = confirmation(job);
  redraw();
  const next = h("button", { type: "submit", class: "main" }, `${t("data.save_next")}: ${t("step.rules")}`);
  const button = h("button", { type: "submit" }, t("data.save"));
  const records = looked.columns.length > 0;
  const linked = h("section", { class: "card" }, h("h2", {}, t("data.tables")), h("p", { class: "help" }, t("data.tables_help")), tables.box);
  const made = h("form", { novalidate: true }, top, confirm.box,
    records ? h("section", { class: "card" }, h("h2", {}, t("data.columns")), h("p", { class: "help" }, `${named.replace(/^.*\//, "")}: ${looked.rows.toLocaleString(document.documentElement.lang)} ${t("data.records")}. ${t("data.columns_help")}`), columns, meanings()) : linked,
    h("section", { class: "card" }, h("h2", {}, t("data.dimensions")), h("p", { class: "help" }, t("data.dimensions_help")), dims),
    records ? linked : "",
    records ? h("section", { class: "card" }, h("h2", {}, t("data.options")), options.box) : "", h("div", { class: "row" }, next, button));
  guardUnsaved(made, top);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const twice = doubles(roles);
    if (twice.length) { showMistakes(made, top, twice)?.focus(); say(t("app.not_saved")); return; }
    const sections = read(job, { roles, entries, options, tables, confirm, looked });
    try {
      const answer = await api("PUT", `${here}/job/data`, { sections });
      const left = answer.mistakes.filter((m) => ["data", "dimensions", "tables"].includes(m.path[0]));
      showMistakes(made, top, left);
      job.unconfirmed = sections.unconfirmed;
      made.dataset.unsaved = "";
      say(t("app.saved"));
      if (made.dataset.leaving && !left.length) location.href = made.dataset.leaving;
      else if (event.submitter && event.submitter !== button && !left.length) location.href = page("rules");
    } catch (error) {
      if (!error.mistakes) { top.replaceChildren(problem(error)); top.scrollIntoView({ block: "center" }); return; }
      const first = showMistakes(made, top, error.mistakes);
      say(t("app.not_saved"));
      (first ?? top).scrollIntoView({ block: "center" });
      first?.focus();
    }
  });
  return made;
}

/** Ask before a link leaves the page with changes that are not saved. */
function guardUnsaved(form, top) {
  for (const kind of ["input", "change"]) form.addEventListener(kind, (event) => { if (event.target.type !== "file") form.dataset.unsaved = "yes"; });
  for (const link of document.querySelectorAll(".steps a, .top a")) {
    link.addEventListener("click", (event) => {
      if (!form.dataset.unsaved || !form.isConnected) return;
      event.preventDefault();
      const save = h("button", { type: "button", class: "main", onclick: () => { form.dataset.leaving = link.href; form.requestSubmit(); } }, t("data.leave_save"));
      top.replaceChildren(note("warn", h("p", {}, t("data.leave")), h("div", { class: "row" }, save, h("a", { class: "button", href: link.href }, t("data.leave_without")))));
      top.scrollIntoView({ block: "center" });
      save.focus();
    });
  }
}

const chosenDimensions = (roles, job) => roles.size
  ? [...roles].filter(([, control]) => control.value === "dimension").map(([name]) => name)
  : Object.keys(job.dimensions ?? {});

/** Two columns cannot both be the value. */
function doubles(roles) {
  const taken = (role, but) => [...roles].some(([name, control]) => name !== but && control.value === role);
  return [...roles].filter(([name, control]) => SINGLE.includes(control.value) && taken(control.value, name)).map(([name]) => ({ path: ["dimensions", name], text: t("data.two_columns"), hint: null }));
}

function roleOf(job, column) {
  if (job.dimensions && column.name in job.dimensions) return "dimension";
  const own = SINGLE.find((role) => job.data?.[role] === column.name);
  if (own) return own;
  return Object.values(job.dimensions ?? {}).some((entry) => typeof entry.hierarchy !== "string" && entry.levels?.includes(column.name)) ? "level" : "";
}

function columnTable(job, looked, roles, redraw) {
  const language = document.documentElement.lang;
  const rows = looked.columns.map((column) => {
    const role = roleOf(job, column);
    const control = choice(ROLES.map((key) => [key, t(`role.${key || "none"}`)]), role, { "aria-label": `${t("data.role")}: ${column.name}` });
    control.addEventListener("change", redraw);
    roles.set(column.name, control);
    const kind = column.numeric ? (column.whole ? "whole" : "number") : "codes";
    const box = h("div", { class: "field", "data-path": `dimensions/${column.name}` }, control, h("p", { class: "mistake", hidden: true }));
    box.control = control;
    const why = role === "" && column.why.startsWith("dimension:") ? `${t("data.could_be")} ${said(column.why.slice(10).trim())}` : said(column.why);
    return h("tr", {}, h("th", { scope: "row" }, column.name),
      h("td", {}, t(`data.kind_${kind}`), h("span", { class: "help" }, `${column.distinct.toLocaleString(language)} ${t("data.different")}`)),
      h("td", {}, column.examples.length ? column.examples.join(", ") : h("span", { class: "help" }, t("data.not_shown"))), h("td", { class: "number" }, column.gaps ? column.gaps.toLocaleString(language) : "–"),
      h("td", {}, box), h("td", { class: "help" }, why));
  });
  return scrolling(t("data.columns"), {}, stacked(h("table", { class: "plain columns" }, h("thead", {}, h("tr", {},
    ["column", "kind", "examples", "gaps", "role", "why"].map((name) => h("th", { scope: "col", class: name === "gaps" ? "number" : null }, t(`data.${name}`))))), h("tbody", {}, rows))));
}

function meanings() {
  return h("details", {}, h("summary", {}, t("data.meanings")), h("dl", { class: "meanings" }, ROLES.filter(Boolean).flatMap((role) => [h("dt", {}, t(`role.${role}`)), h("dd", {}, t(`role.${role}_help`))])));
}

// ---------------------------------------------------------------- gaps, numbers, guesses

function optionFields(job) {
  const skip = tick(job.data?.skip_missing);
  const alone = tick(job.data?.standalone);
  const decimal = choice([[".", t("data.decimal_point")], [",", t("data.decimal_comma")]], job.data?.decimal ?? ".");
  const decimals = text(job.data?.decimals, { inputmode: "numeric" });
  const box = h("div", { class: "fields" }, field(t("data.decimal"), decimal, { help: t("data.decimal_help"), path: ["data", "decimal"] }),
    field(t("data.decimals"), decimals, { help: t("data.decimals_help"), path: ["data", "decimals"] }),
    h("div", {}, field(t("data.skip_missing"), skip, { check: true, help: t("data.skip_missing_help"), path: ["data", "skip_missing"] }), field(t("data.standalone"), alone, { check: true, help: t("data.standalone_help"), path: ["data", "standalone"] })));
  return { box, read: () => ({ skip_missing: skip.checked || null, standalone: alone.checked || null, decimal: decimal.value === "," ? "," : null, decimals: numberOf(decimals) }) };
}

function confirmation(job) {
  const guesses = job.unconfirmed ?? [];
  if (!guesses.length) return { box: "", read: () => null };
  const control = tick(false);
  const box = h("section", { class: "note warn" }, h("p", {}, `${t("data.confirm_help")} `, h("strong", {}, guesses.join(", ")), "."), field(t("data.confirm"), control, { check: true, path: ["unconfirmed"] }));
  return { box, read: () => (control.checked ? null : guesses) };
}

function read(job, { roles, entries, options, tables, confirm, looked }) {
  const data = { ...(job.data ?? {}) };
  if (looked.columns.length) {
    for (const role of SINGLE) data[role] = [...roles].find(([, control]) => control.value === role)?.[0] ?? null;
    Object.assign(data, options.read());
  }
  const dimensions = {};
  for (const name of chosenDimensions(roles, job)) dimensions[name] = entries.get(name).read();
  return { data, dimensions, tables: tables.read(), unconfirmed: confirm.read() };
}
