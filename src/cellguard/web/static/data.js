// The page Data: which file, which column is what, how codes add up, which tables.
import { api, choice, field, h, here, listOf, note, page, problem, say, showMistakes, t, text, tick } from "./dom.js";
import { Tree, nested } from "./tree.js";

const SINGLE = ["value", "holding", "weight", "shadow", "waiver", "request", "cost"];
const ROLES = ["", "dimension", ...SINGLE];
const DATA = [".csv", ".csv.gz", ".parquet", ".tsv", ".txt", ".jj", ".jj.gz"];
const TREES = [".hrc", ".txt", ".csv", ".parquet"];
const ends = (name, endings) => endings.some((ending) => name.toLowerCase().endsWith(ending));

export async function show(view) {
  const state = await api("GET", here);
  const job = state.job;
  const named = job.data?.file ?? job.data?.table;
  const begun = Boolean(named) || (job.tables ?? []).length > 0;
  const top = h("div");
  view.replaceChildren(top);
  if (!begun) { view.append(chooser(view, state, false)); return; }
  const again = h("details", { class: "card" }, h("summary", {}, t("data.another")), h("p", { class: "help" }, t("data.another_help")), chooser(view, state, true));
  if (job.data?.table) { view.append(note("", h("p", {}, named)), h("a", { class: "button main", href: page("rules") }, `${t("app.next")}: ${t("step.rules")}`), again); return; }
  const file = state.files.find((entry) => entry.relative === named);
  try {
    const looked = file ? await api("POST", `${here}/columns`, { file: file.name }) : { columns: [], rows: 0 };
    view.append(form(view, state, looked, named), again);
  } catch (error) { view.append(problem(error), again); }
}

// ---------------------------------------------------------------- choosing a file

function chooser(view, state, again) {
  const files = state.files.filter((entry) => ends(entry.name, DATA));
  const select = choice([["", "–"], ...files.map((entry) => [entry.name, entry.name])], "", { name: "file" });
  const fileField = field(t("data.file"), select, { help: t("data.file_help"), path: ["data", "file"] });
  const said = h("div");
  const use = async (name) => {
    if (!name) { wrong(fileField, t("tree.needed")); return; }
    try {
      await api("POST", `${here}/data`, { file: name });
      await show(view);
    } catch (error) { said.replaceChildren(problem(error), readyOffer(view, name, error)); }
  };
  const input = h("input", { type: "file", name: "upload" });
  const uploadField = field(t("data.upload"), input, { help: t("data.upload_help"), path: ["upload"] });
  const drop = h("div", { class: "drop" }, uploadField);
  const send = async (file) => {
    if (!file) return;
    try {
      const made = await api("PUT", `${here}/files/${encodeURIComponent(file.name)}`, file);
      if (again || !ends(file.name, [".hrc", ".hst", ".toml"])) await use(made.file);
      else await show(view);
    } catch (error) { wrong(uploadField, error.hint ? `${error.message} ${error.hint}` : error.message); }
  };
  input.addEventListener("change", () => send(input.files[0]));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") send(event.dataTransfer.files[0]);
    });
  }
  return h("div", { class: again ? "" : "card" }, h("div", { class: "two" },
    h("div", {}, fileField, h("div", { class: "row" }, h("button", { type: "button", class: "main", onclick: () => use(select.value) }, t("data.choose")))), drop),
    said, uploads(view, state));
}

function readyOffer(view, name, error) {
  if (!/added up/.test(error.message)) return "";
  return h("button", { type: "button", class: "main", onclick: async () => {
    try { await api("POST", `${here}/ready`, { file: name }); await show(view); } catch (other) { view.prepend(problem(other)); }
  } }, t("data.use_ready"));
}

function uploads(view, state) {
  if (!state.uploads.length) return "";
  return h("div", {}, h("h3", {}, t("data.uploads")), h("ul", {}, state.uploads.map((name) => h("li", {}, `${name} `,
    h("button", { type: "button", class: "small danger", "aria-label": `${t("app.remove")}: ${name}`, onclick: async () => {
      await api("DELETE", `${here}/files/${encodeURIComponent(name)}`);
      await show(view);
    } }, t("app.remove"))))));
}

function wrong(box, words) {
  const line = box.querySelector(".mistake");
  line.textContent = words;
  line.hidden = false;
  box.classList.add("wrong");
  box.control.focus();
}

// ---------------------------------------------------------------- the form

function form(view, state, looked, named) {
  const { job } = state;
  const top = h("div");
  const roles = new Map();
  const dims = h("div");
  const entries = new Map();
  const context = { state, looked, entries };
  const redraw = () => drawDimensions(dims, context, roles);
  const columns = columnTable(job, looked, roles, redraw);
  const options = optionFields(job);
  const tables = tableFields(state, () => chosen(roles, job));
  const confirm = confirmation(job);
  redraw();
  const button = h("button", { type: "submit", class: "main" }, t("data.save"));
  const next = h("button", { type: "submit", value: "next" }, `${t("data.save_next")}: ${t("step.rules")}`);
  const made = h("form", { novalidate: true }, top,
    looked.columns.length ? h("section", { class: "card" }, h("h2", {}, t("data.columns")), h("p", { class: "help" }, `${named}: ${looked.rows.toLocaleString()} ${t("data.records")}. ${t("data.columns_help")}`), columns) : "",
    h("section", { class: "card" }, h("h2", {}, t("data.dimensions")), h("p", { class: "help" }, t("data.dimensions_help")), dims),
    h("section", { class: "card" }, h("h2", {}, t("data.tables")), h("p", { class: "help" }, t("data.tables_help")), tables.box),
    looked.columns.length ? h("section", { class: "card" }, h("h2", {}, t("data.options")), options.box) : "", confirm.box, h("div", { class: "row" }, button, next));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sections = read(job, roles, entries, options, tables, confirm, looked);
    try {
      const answer = await api("PUT", `${here}/job/data`, { sections });
      showMistakes(made, top, answer.mistakes.filter((m) => ["data", "dimensions", "tables"].includes(m.path[0])));
      job.unconfirmed = sections.unconfirmed;
      say(t("app.saved"));
      if (event.submitter === next) location.href = page("rules");
    } catch (error) {
      if (!error.mistakes) { top.replaceChildren(problem(error)); return; }
      const first = showMistakes(made, top, error.mistakes);
      say(t("app.not_saved"));
      (first ?? top).scrollIntoView({ block: "center" });
      first?.focus();
    }
  });
  return made;
}

const chosen = (roles, job) => roles.size
  ? [...roles].filter(([, control]) => control.value === "dimension").map(([name]) => name)
  : Object.keys(job.dimensions ?? {});

function roleOf(job, column) {
  if (job.dimensions && column.name in job.dimensions) return "dimension";
  return SINGLE.find((role) => job.data?.[role] === column.name) ?? "";
}

function columnTable(job, looked, roles, redraw) {
  const rows = looked.columns.map((column) => {
    const control = choice(ROLES.map((role) => [role, t(`role.${role || "none"}`)]), roleOf(job, column), { "aria-label": `${t("data.role")}: ${column.name}` });
    control.addEventListener("change", redraw);
    roles.set(column.name, control);
    const kind = column.numeric ? (column.whole ? "whole" : "number") : "codes";
    const box = h("div", { class: "field", "data-path": `dimensions/${column.name}` }, control, h("p", { class: "mistake", hidden: true }));
    box.control = control;
    return h("tr", {}, h("th", { scope: "row" }, column.name),
      h("td", {}, `${t(`data.kind_${kind}`)}, ${column.distinct.toLocaleString()} ${t("data.different")}`),
      h("td", {}, column.examples.join(", ")), h("td", { class: "number" }, column.gaps ? column.gaps.toLocaleString() : "–"),
      h("td", {}, box), h("td", { class: "help" }, column.why));
  });
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("data.columns") }, h("table", { class: "plain" }, h("thead", {}, h("tr", {},
    ["column", "kind", "examples", "gaps", "role", "why"].map((name) => h("th", { scope: "col", class: name === "gaps" ? "number" : "" }, t(`data.${name}`))))), h("tbody", {}, rows)));
}

// ---------------------------------------------------------------- dimensions and their hierarchies

function drawDimensions(box, context, roles) {
  const { state, entries } = context;
  const names = chosen(roles, state.job);
  for (const name of names) if (!entries.has(name)) entries.set(name, dimension(context, name));
  box.replaceChildren(...names.map((name) => entries.get(name).box));
}

function kindOf(entry) {
  if (typeof entry.hierarchy === "string") return "file";
  if (entry.hierarchy) return "drawn";
  if (entry.digits) return "digits";
  return entry.levels ? "levels" : "flat";
}

function dimension({ state, looked }, name) {
  const entry = state.job.dimensions?.[name] ?? {};
  const column = looked.columns.find((found) => found.name === name) ?? { codes: [] };
  const path = (key) => ["dimensions", name, key];
  const kinds = ["flat", "file", "digits", "levels", "drawn"];
  const kind = choice(kinds.map((key) => [key, t(`data.hierarchy_${key}`)]), kindOf(entry));
  const files = state.files.filter((file) => ends(file.name, TREES));
  const listed = typeof entry.hierarchy === "string" ? entry.hierarchy : "";
  const file = choice([["", "–"], ...files.map((f) => [f.relative, f.name])], listed);
  const digits = text((entry.digits ?? []).join(", "));
  const levels = text((entry.levels ?? []).join(", "));
  const total = text(entry.total);
  const missing = text((entry.missing ?? []).join(", "));
  const tree = new Tree(column.codes.filter((code) => !(entry.missing ?? []).includes(code)), typeof entry.hierarchy === "object" ? entry.hierarchy : null);
  const parts = {
    file: [field(t("data.hierarchy_file_label"), file, { help: t("data.hierarchy_file_help"), path: path("hierarchy") })],
    digits: [field(t("data.digits_label"), digits, { help: t("data.digits_help"), path: path("digits") })],
    levels: [field(t("data.levels_label"), levels, { help: t("data.levels_help"), path: path("levels") })],
    drawn: [], flat: [],
  };
  const inner = h("div", { class: "fields" });
  const drawn = h("div", { class: "field", "data-path": `dimensions/${name}/hierarchy`, hidden: true }, tree.box, h("p", { class: "mistake", hidden: true }));
  const draw = () => {
    inner.replaceChildren(...parts[kind.value], field(t("data.total_label"), total, { help: t("data.total_help"), path: path("total") }),
      field(t("data.missing_label"), missing, { help: t("data.missing_help"), path: path("missing") }));
    drawn.hidden = kind.value !== "drawn";
    drawn.dataset.path = kind.value === "drawn" ? `dimensions/${name}/hierarchy` : "";
  };
  kind.addEventListener("change", draw);
  draw();
  const box = h("fieldset", { class: "rule" }, h("legend", {}, name),
    field(`${t("data.hierarchy")} ${name}`, kind, {}), inner, drawn);
  const read = () => {
    const out = {};
    if (kind.value === "file") { out.hierarchy = file.value || "?"; if (levels.value && entry.levels && listed) out.levels = entry.levels; }
    if (kind.value === "digits") out.digits = listOf(digits).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
    if (kind.value === "levels") out.levels = listOf(levels);
    if (kind.value === "drawn") out.hierarchy = nested(tree);
    if (total.value.trim()) out.total = total.value.trim();
    if (missing.value.trim()) out.missing = listOf(missing);
    return out;
  };
  return { box, read };
}

// ---------------------------------------------------------------- tables, gaps, guesses

function tableFields(state, names) {
  const { job } = state;
  const list = h("div");
  const entries = [];
  const several = choice([["one", t("data.tables_one")], ["several", t("data.tables_several")]], (job.tables ?? []).length ? "several" : "one");
  const add = (entry = { dimensions: [] }) => {
    const made = table(state, entry, names(), entries.length, () => { entries.splice(entries.indexOf(made), 1); made.box.remove(); });
    entries.push(made);
    list.append(made.box);
  };
  (job.tables ?? []).forEach((entry) => add(entry));
  const button = h("button", { type: "button", onclick: () => add() }, t("data.table_add"));
  const inner = h("div", { hidden: several.value === "one" }, list, button);
  several.addEventListener("change", () => { inner.hidden = several.value === "one"; if (!entries.length) add(); });
  const box = h("div", { class: "field", "data-path": "tables" }, field(t("data.tables"), several), inner, h("p", { class: "mistake", hidden: true }));
  return { box, read: () => (several.value === "one" ? null : entries.map((entry) => entry.read())) };
}

function table(state, entry, names, k, remove) {
  const path = (key) => ["tables", k, key];
  const name = text(entry.name);
  const ticks = new Map(names.map((d) => [d, tick(entry.dimensions.includes(d))]));
  const files = state.files.filter((file) => ends(file.name, [".csv", ".csv.gz", ".parquet"]));
  const file = choice([["", "–"], ...files.map((f) => [f.relative, f.name])], entry.file ?? "");
  const value = text(entry.value);
  const count = text(entry.count);
  const largest = text((entry.top ?? []).join(", "));
  const ready = h("div", { class: "fields" }, field(t("data.table_value"), value, { path: path("value") }), field(t("data.table_count"), count, { path: path("count") }), field(t("data.table_top"), largest, { path: path("top") }));
  const draw = () => { ready.hidden = !file.value; };
  file.addEventListener("change", draw);
  draw();
  const boxes = h("div", { class: "field", role: "group", "aria-label": t("data.table_dimensions"), "data-path": path("dimensions").join("/") }, h("span", { class: "label" }, t("data.table_dimensions")),
    [...ticks].map(([d, control]) => field(d, control, { check: true })), h("p", { class: "mistake", hidden: true }));
  const box = h("fieldset", { class: "rule", "data-path": `tables/${k}` }, h("legend", {}, entry.name || `${t("look.table")} ${k + 1}`), h("div", { class: "fields" },
    field(t("data.table_name"), name, { path: path("name") }), boxes, field(t("data.table_file"), file, { help: t("data.table_file_help"), path: path("file") })), ready,
    h("p", { class: "mistake", hidden: true }), h("div", { class: "row" }, h("button", { type: "button", class: "small danger", onclick: remove }, t("app.remove"))));
  const read = () => {
    const out = { ...entry, dimensions: [...ticks].filter(([, control]) => control.checked).map(([d]) => d), name: name.value.trim() || null, file: file.value || null };
    Object.assign(out, file.value ? { value: value.value.trim() || null, count: count.value.trim() || null, top: listOf(largest) } : { value: null, count: null, top: null });
    return out;
  };
  return { box, read };
}

function optionFields(job) {
  const skip = tick(job.data?.skip_missing);
  const alone = tick(job.data?.standalone);
  const decimal = choice([[".", "."], [",", ","]], job.data?.decimal ?? ".");
  const box = h("div", { class: "fields" }, field(t("data.skip_missing"), skip, { check: true, path: ["data", "skip_missing"] }),
    field(t("data.standalone"), alone, { check: true, path: ["data", "standalone"] }), field(t("data.decimal"), decimal, { help: t("data.decimal_help"), path: ["data", "decimal"] }));
  return { box, read: () => ({ skip_missing: skip.checked || null, standalone: alone.checked || null, decimal: decimal.value === "," ? "," : null }) };
}

function confirmation(job) {
  const guesses = job.unconfirmed ?? [];
  if (!guesses.length) return { box: "", read: () => null };
  const control = tick(false);
  const box = h("section", { class: "note warn" }, h("p", {}, `${t("data.confirm_help")} ${guesses.join(", ")}.`), field(t("data.confirm"), control, { check: true, path: ["unconfirmed"] }));
  return { box, read: () => (control.checked ? null : guesses) };
}

function read(job, roles, entries, options, tables, confirm, looked) {
  const data = { ...(job.data ?? {}) };
  if (looked.columns.length) {
    for (const role of SINGLE) data[role] = [...roles].find(([, control]) => control.value === role)?.[0] ?? null;
    Object.assign(data, options.read());
  }
  const dimensions = {};
  for (const name of chosen(roles, job)) dimensions[name] = entries.get(name).read();
  return { data, dimensions, tables: tables.read(), unconfirmed: confirm.read() };
}
