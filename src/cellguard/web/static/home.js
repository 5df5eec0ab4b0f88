// The list of projects.
import { api, field, fieldWrong, h, note, problem, scrolling, stacked, t, text } from "./dom.js";

export async function show(view) {
  const projects = await api("GET", "/projects");
  view.replaceChildren(list(view, projects), h("div", { class: "two" }, newProject(), sample()));
}

function sample() {
  const said = h("div", { role: "status" });
  const button = h("button", { type: "button", id: "sample" }, t("home.sample_create"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    try { location.href = `/p/${encodeURIComponent((await api("POST", "/projects/sample")).id)}/data`; } catch (error) { said.replaceChildren(problem(error)); button.disabled = false; }
  });
  return h("section", { class: "card" }, h("h2", {}, t("home.sample")), h("p", {}, t("home.sample_help")), h("div", { class: "row" }, button), said);
}

function list(view, projects) {
  if (!projects.length) return note("", h("p", {}, t("home.none")));
  return scrolling(t("home.title"), { class: "card scroll" }, stacked(h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("home.name")), h("th", { scope: "col" }, t("releases.status")), h("th", { scope: "col", class: "number" }, t("step.releases")), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, t("app.remove"))))),
    h("tbody", {}, projects.map((entry) => h("tr", {},
      h("th", { scope: "row" }, h("a", { href: `/p/${encodeURIComponent(entry.id)}/data` }, entry.folder)),
      h("td", {}, entry.state ? t(`state.${entry.state}`) : t("state.none")),
      h("td", { class: "number" }, String(entry.releases)),
      h("td", {}, removal(view, entry))))))));
}

function removal(view, entry) {
  const button = h("button", { class: "small danger", type: "button", "aria-label": `${t("home.remove")}: ${entry.folder}` }, t("app.remove"));
  const signer = text("", { autocomplete: "off" });
  const named = h("div", { hidden: true }, field(t("home.signer"), signer, { help: t("home.signer_help", { releases: entry.signed.join(", ") }) }));
  const said = h("div", { role: "status" });
  let asked = false;
  button.addEventListener("click", async () => {
    if (!asked) { asked = true; button.textContent = t("home.remove_sure"); named.hidden = !entry.signed.length; if (!named.hidden) signer.focus(); return; }
    try {
      await api("DELETE", `/projects/${encodeURIComponent(entry.id)}`, { signers: signer.value.split(",").map((name) => name.trim()).filter(Boolean) });
      await show(view);
    } catch (error) { said.replaceChildren(problem(error)); }
  });
  return h("div", {}, named, button, said);
}

function newProject() {
  const name = text("", { name: "name", autocomplete: "off", required: true });
  const box = field(t("home.name"), name, { help: t("home.name_help"), path: ["name"] });
  const form = h("form", { class: "card" }, h("h2", {}, t("home.new")), h("div", { class: "fields" }, box),
    h("div", { class: "row" }, h("button", { class: "main", type: "submit" }, t("home.create"))));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const made = await api("POST", "/projects", { name: name.value });
      location.href = `/p/${encodeURIComponent(made.id)}/data`;
    } catch (error) {
      fieldWrong(box, error.hint ? `${error.message} ${error.hint}` : error.message);
    }
  });
  return form;
}
