// Choosing data: files of the folder, ticked, or dropped here. One makes a table, several make a publication.
import { api, count, field, fieldWrong, h, here, note, problem, t, text, tick } from "./dom.js";

const DATA = [".csv", ".csv.gz", ".parquet", ".xlsx", ".tsv", ".txt", ".jj", ".jj.gz"];
const TREES = [".hrc", ".txt", ".csv", ".parquet", ".xlsx"];
const NO_DATA = [".hrc", ".hst", ".toml"];
const MANY = 12;
export const ends = (name, endings) => endings.some((ending) => name.toLowerCase().endsWith(ending));

/** A box to choose files in. `chosen` are ticked before; `done(told)` is called once a job is drafted. */
export function chooser(state, chosen, done) {
  const box = h("div");
  const begun = chosen.length > 0;
  const draw = (current, ticked, news = "") => box.replaceChildren(choosing(current, ticked, begun, done, added), news);
  /** Files were added to a project that has data: nothing of it changes; say what they can be used for. */
  const added = async (names) => {
    const current = await api("GET", here);
    state.files = current.files;
    document.dispatchEvent(new CustomEvent("files", { detail: current.files }));
    draw(current, chosen, h("div", { role: "status", id: "added" }, note("good", h("p", {}, `${t("data.added")} `, h("strong", {}, names.map((name) => name.replace(/^.*\//, "")).join(", "))), h("p", {}, t("data.added_help"))), await fits(names)));
  };
  draw(state, chosen);
  return box;
}

/** Dimensions of the job whose codes a new file has: it may be their hierarchy. */
async function fits(names) {
  const found = [];
  for (const name of names.filter((each) => ends(each, TREES))) {
    try { found.push(...(await api("POST", `${here}/hierarchy`, { file: name })).dimensions.map((entry) => ({ ...entry, name }))); } catch { /* no tree */ }
  }
  return h("div", {}, found.map((entry) => note("", h("p", {}, t("data.fits", { file: entry.file, dimension: entry.dimension })), preview(entry),
    h("button", { type: "button", class: "main", onclick: (event) => { document.dispatchEvent(new CustomEvent("hierarchy", { detail: entry })); event.target.disabled = true; event.target.textContent = t("data.fits_used"); } }, t("data.fits_use", { dimension: entry.dimension })))));
}

/** The tree of a file, folded, with what it lacks. */
export function preview(found) {
  const lines = found.tree.map(([code, label, depth, leaf]) => h("li", { class: leaf ? "leaf" : "group", "data-depth": String(Math.min(depth, 6)) }, label ? `${code} ${label}` : code));
  const lacks = found.lacking.length ? note("warn", h("p", {}, t("data.tree_lacks", { codes: found.lacking.join(", ") + (found.lacking_more ? " …" : "") }))) : h("p", { class: "help" }, t("data.tree_complete"));
  return h("div", { class: "preview" }, h("p", { class: "help" }, t("data.tree_size", { codes: count(found.codes), depth: found.depth })), lacks,
    h("details", { open: found.tree.length <= 20 }, h("summary", {}, t("data.tree_show")), h("ul", { class: "outline", tabindex: "0", "aria-label": t("data.tree_show") }, lines), found.codes > found.tree.length ? h("p", { class: "help" }, t("data.tree_more", { n: count(found.codes - found.tree.length) })) : ""));
}

function choosing(state, chosen, begun, done, added) {
  const files = state.files.filter((entry) => ends(entry.name, DATA));
  const ticks = new Map(files.map((entry) => [entry.name, tick(chosen.includes(entry.relative))]));
  const said = h("div", { role: "status" });
  const button = h("button", { type: "button", class: "main", id: "use" });
  const picked = () => [...ticks].filter(([, control]) => control.checked).map(([name]) => name);
  let sure = !begun;
  const named = () => { const n = picked().length; sure = !begun; button.textContent = begun ? t("data.choose_again", { n }) : n > 1 ? t("data.choose_several", { n }) : t("data.choose"); };
  const use = async (names) => {
    if (!names.length) { fieldWrong(box, t("data.choose_needed")); return; }
    if (!sure) { sure = true; button.textContent = t("data.choose_sure"); said.replaceChildren(note("warn", h("p", {}, t("data.another_help")))); return; }
    button.disabled = true;
    said.replaceChildren(h("p", { class: "busy" }, t("data.looking")));
    try {
      const made = await api("POST", `${here}/data`, { files: names });
      await done(made.told);
    } catch (error) { said.replaceChildren(problem(error)); }
    button.disabled = false;
  };
  button.addEventListener("click", () => use(picked()));
  const line = (entry) => {
    const control = ticks.get(entry.name);
    control.addEventListener("change", named);
    return h("li", { "data-name": entry.name.toLowerCase() }, h("label", {}, control, h("span", {}, entry.own ? entry.relative : entry.name)));
  };
  const own = files.filter((entry) => entry.own), others = files.filter((entry) => !entry.own);
  const lists = [own, others].map((part) => h("ul", { class: "files" }, part.map(line)));
  const sought = text("", { type: "search" });
  sought.addEventListener("input", () => { for (const entry of lists.flatMap((list) => [...list.children])) entry.hidden = !entry.dataset.name.includes(sought.value.trim().toLowerCase()); });
  const box = h("div", { class: "field", role: "group", "aria-label": t("data.file") }, h("span", { class: "label" }, t("data.file")), h("p", { class: "help" }, t("data.file_help")),
    files.length > MANY ? field(t("data.file_search"), sought) : "", files.length ? "" : h("p", { class: "quiet" }, t("data.no_files")),
    own.length ? [h("span", { class: "label" }, t("data.files_own")), lists[0]] : "", others.length ? [own.length ? h("span", { class: "label" }, t("data.files_others")) : "", lists[1]] : "", h("p", { class: "mistake", hidden: true }));
  named();
  return h("div", { class: "two" }, h("div", {}, box, h("div", { class: "row" }, button), said), h("div", {}, dropping(begun ? added : use, begun ? added : done), uploads(state, done)));
}

/** Store files in the project; returns their names in the folder of the page. */
export async function store(files, box) {
  const stored = [];
  try {
    for (const file of files) stored.push((await api("PUT", `${here}/files/${encodeURIComponent(file.name)}`, file)).file);
    fieldWrong(box, "");
  } catch (error) { fieldWrong(box, error.hint ? `${error.message} ${error.hint}` : error.message); return null; }
  return stored;
}

function dropping(use, done) {
  const input = h("input", { type: "file", name: "upload", multiple: true });
  const box = field(t("data.upload"), input, { help: t("data.upload_help"), path: ["upload"] });
  const drop = h("div", { class: "drop" }, box);
  const send = async (files) => {
    const stored = await store(files, box);
    if (!stored?.length) return;
    const data = stored.filter((name) => !ends(name, NO_DATA));
    if (use === done) await use(stored);
    else if (data.length) await use(data);
    else await done([]);
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
  const said = h("div", { role: "status" });
  return h("div", {}, h("h3", {}, t("data.uploads")), h("ul", { class: "files" }, state.uploads.map((name) => h("li", {}, h("span", {}, name),
    h("button", { type: "button", class: "small danger", "aria-label": `${t("app.remove")}: ${name}`, onclick: async () => {
      try { await api("DELETE", `${here}/files/${encodeURIComponent(name)}`); } catch (error) { said.replaceChildren(problem(error)); return; }
      await done([]);
    } }, t("app.remove"))))), said);
}
