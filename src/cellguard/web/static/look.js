// The page Look: which release, and what beside it.
import { api, choice, doFirst, field, h, here, note, onward, page, t } from "./dom.js";
import { tableView } from "./tableview.js";

export async function show(view) {
  const state = await api("GET", here);
  const asked = new URLSearchParams(location.search);
  const names = state.releases;
  const first = names.includes(asked.get("release")) ? asked.get("release") : asked.has("release") ? "" : names[0] ?? "";
  const second = names.includes(asked.get("beside")) ? asked.get("beside") : asked.get("beside") === "~" ? "~" : "";
  const release = choice([...names.map((name) => [name, name]), ["", t("look.as_it_is")]], first);
  const beside = choice([["", t("look.beside_none")], ...names.map((name) => [name, name]), ["~", t("look.as_it_is")]], second);
  const box = h("div", { class: "card" });
  const draw = async () => {
    const query = new URLSearchParams(location.search);
    query.set("release", release.value);
    if (beside.value) query.set("beside", beside.value); else query.delete("beside");
    history.replaceState(null, "", page("look", `?${query}`));
    box.replaceChildren();
    await tableView(box, { release: release.value || null, beside: beside.value === "" ? undefined : beside.value === "~" ? null : beside.value });
  };
  release.addEventListener("change", draw);
  beside.addEventListener("change", draw);
  if (state.mistakes.length && !names.length) { view.append(doFirst("app.first_data", "data")); return; }
  const way = h("div", { class: "row" }, onward(names.length ? "sign" : "protect"));
  view.append(note("", h("p", {}, t("app.confidential"))), h("div", { class: "fields card" }, field(t("look.release"), release, { help: t("look.release_help") }), field(t("look.beside"), beside, { help: t("look.beside_help") })), box, way);
  await draw();
}
