// The page Look: which release, and what beside it.
import { api, choice, field, h, here, note, page, t } from "./dom.js";
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
  if (state.mistakes.length && !names.length) { view.append(note("", h("p", {}, t("app.first_data"), " ", h("a", { href: page("data") }, t("step.data"))))); return; }
  const onward = h("div", { class: "row" }, names.length ? h("a", { class: "button main", href: page("sign") }, `${t("app.next")}: ${t("step.sign")}`) : h("a", { class: "button main", href: page("protect") }, `${t("app.next")}: ${t("step.protect")}`));
  view.append(note("", h("p", {}, t("app.confidential"))), h("div", { class: "fields card" }, field(t("look.release"), release, { help: t("look.release_help") }), field(t("look.beside"), beside, { help: t("look.beside_help") })), box, onward);
  await draw();
}
