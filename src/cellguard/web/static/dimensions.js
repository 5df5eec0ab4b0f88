// How the codes of each dimension add up: flat, from a file, by digits, from other columns, or drawn by hand.
import { api, choice, field, h, here, listOf, problem, t, text } from "./dom.js";
import { ends, preview, store } from "./files.js";
import { Tree, nested } from "./tree.js";

const TREES = [".hrc", ".txt", ".csv", ".parquet", ".xlsx"];
const KINDS = ["flat", "file", "digits", "levels", "drawn"];

function kindOf(entry) {
  if (typeof entry.hierarchy === "string") return "file";
  if (entry.hierarchy) return "drawn";
  if (entry.digits) return "digits";
  return entry.levels ? "levels" : "flat";
}

/** Codes that records or tables have, without what stands for all or for "not known". */
async function codesOf({ state, looked }, name, without) {
  let columns = looked.columns;
  if (!columns.length) {
    const table = (state.job.tables ?? []).find((entry) => entry.file && entry.dimensions.includes(name));
    const file = table && state.files.find((entry) => entry.relative === table.file);
    if (!file) return [];
    columns = (await api("POST", `${here}/columns`, { file: file.name })).columns;
    without = [...without, table.total?.[name]];
    name = table.columns?.[name] ?? name;
  }
  const column = columns.find((found) => found.name === name);
  return (column?.codes ?? []).filter((code) => !without.includes(code) && !/^(total|_t)$/i.test(code));
}

export function dimension(context, name) {
  const { state, looked } = context;
  const column = looked.columns.find((found) => found.name === name);
  const entry = state.job.dimensions?.[name] ?? (column?.levels.length ? { levels: column.levels } : {});
  const path = (key) => ["dimensions", name, key];
  const kind = choice(KINDS.map((key) => [key, t(`data.hierarchy_${key}`)]), kindOf(entry));
  const listed = typeof entry.hierarchy === "string" ? entry.hierarchy : "";
  const file = choice([], "");
  let levelsOfFile = entry.levels && listed ? entry.levels : null;
  const list = (files, value) => {
    const options = files.filter((f) => ends(f.name, TREES)).map((f) => [f.relative, f.own ? f.relative : f.name]);
    file.replaceChildren(...[["", t("data.hierarchy_file_choose")], ...options].map(([key, words]) => h("option", { value: key }, words)));
    file.value = value;
  };
  list(state.files, listed);
  document.addEventListener("files", (event) => list(event.detail, file.value));
  const seen = h("div", { class: "field wide", role: "status" });
  const look = async () => {
    const found = state.files.find((f) => f.relative === file.value);
    if (kind.value !== "file" || !found) { seen.replaceChildren(); return; }
    try {
      const tree = await api("POST", `${here}/hierarchy`, { file: found.name, dimension: name });
      levelsOfFile = tree.levels ?? (listed === file.value ? levelsOfFile : null);
      seen.replaceChildren(preview(tree));
    } catch (error) { seen.replaceChildren(problem(error)); }
  };
  const own = h("input", { type: "file", accept: TREES.join(",") });
  const ownField = field(t("data.hierarchy_upload"), own, { help: t("data.hierarchy_upload_help") });
  own.addEventListener("change", async () => {
    const stored = await store([...own.files], ownField);
    if (!stored?.length) return;
    const current = await api("GET", here);
    state.files = current.files;
    document.dispatchEvent(new CustomEvent("files", { detail: current.files }));
    file.value = current.files.find((f) => f.name === stored[0])?.relative ?? "";
    file.dispatchEvent(new Event("change", { bubbles: true }));
  });
  file.addEventListener("change", look);
  document.addEventListener("hierarchy", (event) => {
    if (event.detail.dimension !== name) return;
    kind.value = "file";
    draw();
    file.value = state.files.find((f) => f.name === event.detail.name)?.relative ?? "";
    file.dispatchEvent(new Event("change", { bubbles: true }));
    kind.scrollIntoView({ block: "center" });
  });
  const digits = text((entry.digits ?? []).join(", "));
  const levels = text((entry.levels ?? column?.levels ?? []).join(", "));
  const total = text(entry.total);
  const missing = text((entry.missing ?? []).join(", "));
  const parts = {
    file: [field(t("data.hierarchy_file_label"), file, { help: t("data.hierarchy_file_help"), path: path("hierarchy") }), ownField, seen],
    digits: [field(t("data.digits_label"), digits, { help: t("data.digits_help"), path: path("digits") })],
    levels: [field(t("data.levels_label"), levels, { help: t("data.levels_help"), path: path("levels") })],
    drawn: [], flat: [],
  };
  const inner = h("div", { class: "fields" });
  const place = h("div");
  const drawn = h("div", { class: "field", hidden: true }, place, h("p", { class: "mistake", hidden: true }));
  let tree = null;
  const plant = async () => {
    if (tree) return;
    const own = entry.hierarchy && typeof entry.hierarchy === "object" ? entry.hierarchy : null;
    tree = new Tree(await codesOf(context, name, [...(entry.missing ?? []), entry.total]), own);
    place.replaceChildren(tree.box);
  };
  const kindField = field(`${t("data.hierarchy")} ${name}`, kind, {});
  const draw = () => {
    inner.replaceChildren(kindField, ...parts[kind.value]);
    drawn.hidden = kind.value !== "drawn";
    drawn.dataset.path = kind.value === "drawn" ? `dimensions/${name}/hierarchy` : "";
    if (kind.value === "drawn") return plant();
    return look();
  };
  kind.addEventListener("change", draw);
  draw();
  const more = h("details", { open: Boolean(entry.total || entry.missing?.length) }, h("summary", {}, t("data.more")), h("div", { class: "fields" },
    field(t("data.total_label"), total, { help: t("data.total_help"), path: path("total") }), field(t("data.missing_label"), missing, { help: t("data.missing_help"), path: path("missing") })));
  const box = h("fieldset", { class: "rule" }, h("legend", {}, name), inner, drawn, more);
  const read = () => {
    const out = {};
    if (kind.value === "file") { out.hierarchy = file.value || "?"; if (levelsOfFile) out.levels = levelsOfFile; }
    if (kind.value === "digits") out.digits = listOf(digits).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
    if (kind.value === "levels") out.levels = listOf(levels);
    if (kind.value === "drawn" && tree) out.hierarchy = nested(tree);
    if (total.value.trim()) out.total = total.value.trim();
    if (missing.value.trim()) out.missing = listOf(missing);
    return out;
  };
  return { box, read };
}
