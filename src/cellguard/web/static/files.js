// Choosing data: files of the folder, ticked, or dropped here. One makes a table, several make a publication.
import { api, field, fieldWrong, h, here, problem, t, text, tick } from "./dom.js";

const DATA = [".csv", ".csv.gz", ".parquet", ".xlsx", ".tsv", ".txt", ".jj", ".jj.gz"];
const NO_DATA = [".hrc", ".hst", ".toml"];
const MANY = 12;
export const ends = (name, endings) => endings.some((ending) => name.toLowerCase().endsWith(ending));

/** A box to choose files in. `chosen` are ticked before; `done(told)` is called once a job is drafted. */
export function chooser(state, chosen, done) {
  const files = state.files.filter((entry) => ends(entry.name, DATA));
  const ticks = new Map(files.map((entry) => [entry.name, tick(chosen.includes(entry.relative))]));
  const said = h("div", { role: "status" });
  const button = h("button", { type: "button", class: "main", id: "use" });
  const picked = () => [...ticks].filter(([, control]) => control.checked).map(([name]) => name);
  const named = () => { const n = picked().length; button.textContent = n > 1 ? t("data.choose_several", { n }) : t("data.choose"); };
  const use = async (names) => {
    if (!names.length) { fieldWrong(box, t("data.choose_needed")); return; }
    button.disabled = true;
    said.replaceChildren(h("p", { class: "busy" }, t("data.looking")));
    try {
      const made = await api("POST", `${here}/data`, { files: names });
      await done(names.length > 1 ? made.told : []);
    } catch (error) { said.replaceChildren(problem(error)); }
    button.disabled = false;
  };
  button.addEventListener("click", () => use(picked()));
  const list = h("ul", { class: "files" }, files.map((entry) => {
    const control = ticks.get(entry.name);
    control.addEventListener("change", named);
    return h("li", { "data-name": entry.name.toLowerCase() }, h("label", {}, control, h("span", {}, entry.name)));
  }));
  const sought = text("", { type: "search" });
  sought.addEventListener("input", () => { for (const line of list.children) line.hidden = !line.dataset.name.includes(sought.value.trim().toLowerCase()); });
  const box = h("div", { class: "field", role: "group", "aria-label": t("data.file") }, h("span", { class: "label" }, t("data.file")), h("p", { class: "help" }, t("data.file_help")),
    files.length > MANY ? field(t("data.file_search"), sought) : "", files.length ? list : h("p", { class: "quiet" }, t("data.no_files")), h("p", { class: "mistake", hidden: true }));
  named();
  return h("div", {}, h("div", { class: "two" }, h("div", {}, box, h("div", { class: "row" }, button), said), h("div", {}, dropping(use, done), uploads(state, done))));
}

function dropping(use, done) {
  const input = h("input", { type: "file", name: "upload", multiple: true });
  const box = field(t("data.upload"), input, { help: t("data.upload_help"), path: ["upload"] });
  const drop = h("div", { class: "drop" }, box);
  const send = async (files) => {
    const stored = [];
    try {
      for (const file of files) stored.push((await api("PUT", `${here}/files/${encodeURIComponent(file.name)}`, file)).file);
    } catch (error) { fieldWrong(box, error.hint ? `${error.message} ${error.hint}` : error.message); return; }
    const data = stored.filter((name) => !ends(name, NO_DATA));
    if (data.length) await use(data);
    else if (stored.length) await done([]);
  };
  input.addEventListener("change", () => send([...input.files]));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") send([...event.dataTransfer.files]);
    });
  }
  return drop;
}

function uploads(state, done) {
  if (!state.uploads.length) return "";
  return h("div", {}, h("h3", {}, t("data.uploads")), h("ul", { class: "files" }, state.uploads.map((name) => h("li", {}, h("span", {}, name),
    h("button", { type: "button", class: "small danger", "aria-label": `${t("app.remove")}: ${name}`, onclick: async () => {
      await api("DELETE", `${here}/files/${encodeURIComponent(name)}`);
      await done([]);
    } }, t("app.remove"))))));
}
