// Which tables are published: one with all dimensions, or several that share cells.
import { choice, field, h, listOf, t, text, tick } from "./dom.js";
import { ends } from "./files.js";

const FILES = [".csv", ".csv.gz", ".parquet", ".xlsx"];

export function linkedTables(state, names) {
  const { job } = state;
  const list = h("div");
  const entries = [];
  const several = choice([["one", t("data.tables_one")], ["several", t("data.tables_several")]], (job.tables ?? []).length ? "several" : "one");
  const renumber = () => entries.forEach((entry, k) => entry.number(k));
  const add = (entry = { dimensions: [] }) => {
    const made = table(state, entry, names(), () => { entries.splice(entries.indexOf(made), 1); made.box.remove(); renumber(); });
    entries.push(made);
    list.append(made.box);
    renumber();
  };
  (job.tables ?? []).forEach((entry) => add(entry));
  const button = h("button", { type: "button", onclick: () => add() }, t("data.table_add"));
  const inner = h("div", { hidden: several.value === "one" }, list, button);
  several.addEventListener("change", () => { inner.hidden = several.value === "one"; if (!entries.length) add(); });
  const choose = job.data?.file ? field(t("data.tables_which"), several) : "";
  const box = h("div", { class: "field", "data-path": "tables" }, choose, inner, h("p", { class: "mistake", hidden: true }));
  return { box, read: () => (several.value === "one" ? null : entries.map((entry) => entry.read())) };
}

function table(state, entry, names, remove) {
  const name = text(entry.name);
  const ticks = new Map(names.map((d) => [d, tick(entry.dimensions.includes(d))]));
  const files = state.files.filter((file) => ends(file.name, FILES));
  const file = choice([["", state.job.data?.file ? t("data.table_records") : "–"], ...files.map((f) => [f.relative, f.name])], entry.file ?? "");
  const keys = { value: text(entry.value), count: text(entry.count), top: text((entry.top ?? []).join(", ")), priority: text(entry.priority) };
  const made = { name: field(t("data.table_name"), name), file: field(t("data.table_file"), file, { help: t("data.table_file_help") }) };
  for (const [key, control] of Object.entries(keys)) made[key] = field(t(`data.table_${key}`), control, { help: key === "priority" ? t("data.table_priority_help") : "" });
  made.dimensions = h("div", { class: "field", role: "group", "aria-label": t("data.table_dimensions") }, h("span", { class: "label" }, t("data.table_dimensions")),
    h("div", { class: "row" }, [...ticks].map(([d, control]) => field(d, control, { check: true }))), h("p", { class: "mistake", hidden: true }));
  const ready = h("div", { class: "fields" }, made.value, made.count, made.top);
  const draw = () => { ready.hidden = !file.value; };
  file.addEventListener("change", draw);
  draw();
  const legend = h("legend", {}, entry.name || "");
  const box = h("fieldset", { class: "rule" }, legend, h("div", { class: "fields" }, made.file, made.name, made.dimensions), ready,
    h("details", { open: Boolean(entry.priority) }, h("summary", {}, t("data.table_more")), h("div", { class: "fields" }, made.priority)),
    h("p", { class: "mistake", hidden: true }), h("div", { class: "row" }, h("button", { type: "button", class: "small danger", onclick: remove }, t("app.remove"))));
  const number = (k) => {
    box.dataset.path = `tables/${k}`;
    for (const [key, each] of Object.entries(made)) each.dataset.path = `tables/${k}/${key}`;
    legend.textContent = entry.name || `${t("look.table")} ${k + 1}`;
  };
  const typed = (control) => control.value.trim() || null;
  const read = () => {
    const priority = keys.priority.value.trim();
    const out = { ...entry, dimensions: [...ticks].filter(([, control]) => control.checked).map(([d]) => d), name: typed(name), file: file.value || null,
      priority: priority === "" ? null : Number.isFinite(Number(priority)) ? Number(priority) : priority };
    Object.assign(out, file.value ? { value: typed(keys.value), count: typed(keys.count), top: listOf(keys.top) } : { value: null, count: null, top: null });
    return out;
  };
  return { box, read, number };
}
