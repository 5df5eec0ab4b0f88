// The page Sign: the audit, the reports, the files, the job, the command, and who signs.
import { api, choice, field, h, here, later, note, page, problem, say, t, text, tick } from "./dom.js";

const ATTACKS = { adjust: ["B1", "B2", "B3", "C", "decimals"], suppress: ["matching"] };

export async function show(view) {
  const [state, releases] = await Promise.all([api("GET", here), api("GET", `${here}/releases`)]);
  if (!releases.length) { view.append(note("", h("p", {}, t("sign.none"), " ", h("a", { href: page("protect") }, t("step.protect")))), job(state)); return; }
  const asked = new URLSearchParams(location.search).get("release");
  const select = choice(releases.map((entry) => [entry.name, entry.name]), releases.some((entry) => entry.name === asked) ? asked : releases[0].name);
  const box = h("div");
  const draw = () => {
    history.replaceState(null, "", page("sign", `?release=${encodeURIComponent(select.value)}`));
    box.replaceChildren(...one(releases.find((entry) => entry.name === select.value)));
  };
  select.addEventListener("change", draw);
  view.append(h("div", { class: "card fields" }, field(t("sign.release"), select)), box, attack(state), job(state));
  draw();
}

function one(entry) {
  const audit = entry.audit ?? {};
  const verdict = audit.checked === 0 ? ["warn", "sign.nothing_checked"] : entry.safe && audit.safe ? ["good", "sign.safe"] : ["bad", "sign.not_safe"];
  const facts = [[t("sign.checked"), audit.checked], [t("sign.exact"), audit.exact], [t("sign.unsafe"), audit.unsafe], [t("releases.method"), t(`method.${entry.method}.name`)],
    [t("sign.status"), String(entry.status ?? "").replaceAll("_", " ")], [t("sign.repeatable"), entry.repeatable ? t("app.yes") : t("app.no")]];
  return [h("section", { class: "card" }, h("h2", {}, t("sign.audit")), note(verdict[0], h("p", { id: "verdict" }, h("strong", {}, t(verdict[1])))),
    h("dl", { class: "facts" }, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value ?? "–"))])), checking(entry)),
  h("section", { class: "card" }, h("h2", {}, t("sign.reports")), h("ul", {}, ["public", "internal"].filter((part) => entry.files[part]?.includes("report.html")).map((part) =>
    h("li", {}, h("a", { href: `/api${here}/report/${part}?release=${encodeURIComponent(entry.name)}`, target: "_blank", rel: "noopener" }, t(`sign.${part}_report`))))),
  h("h2", {}, t("sign.files")), h("div", { class: "two" }, ["public", "internal"].map((part) => h("div", {}, h("h3", {}, t(`sign.${part}_files`)), h("ul", {}, (entry.files[part] ?? []).map((name) =>
    h("li", {}, h("a", { href: `/api${here}/files/${part}/${encodeURIComponent(name)}?release=${encodeURIComponent(entry.name)}`, download: name }, name)))))))),
  signing(entry)];
}

function checking(entry) {
  const said = h("div", { role: "status" });
  const button = h("button", { type: "button" }, t("sign.check"));
  button.addEventListener("click", async () => {
    try {
      const found = await api("POST", `${here}/releases/check`, { release: entry.name });
      said.replaceChildren(found.accepted ? note("good", h("p", {}, t("sign.check_good", { n: found.checked }))) : note("bad", h("p", {}, t("sign.check_bad")), h("ul", {}, found.problems.map((line) => h("li", {}, line)))));
    } catch (error) { said.replaceChildren(problem(error)); }
  });
  return h("div", {}, h("div", { class: "row" }, button, h("span", { class: "help" }, t("sign.check_help"))), said);
}

function signing(entry) {
  const said = h("div", { role: "status" });
  const shown = (signed) => {
    if (!signed) return;
    const words = { who: signed.who, when: new Date(signed.when).toLocaleString(document.documentElement.lang) };
    said.replaceChildren(note(signed.unchanged ? "good" : "bad", h("p", {}, t(signed.unchanged ? "sign.signed" : "sign.signed_changed", words)), signed.remark ? h("p", {}, signed.remark) : ""));
  };
  const who = text("", { autocomplete: "name" });
  const remark = text("");
  const read = tick(false);
  const form = h("form", { novalidate: true }, h("div", { class: "fields" }, field(t("sign.who"), who, { help: t("sign.who_help"), path: ["who"] }), field(t("sign.remark"), remark)),
    field(t("sign.read"), read, { check: true }), h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, t("sign.sign"))));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try { shown(await api("POST", `${here}/releases/sign`, { release: entry.name, who: who.value, remark: remark.value, read: read.checked })); say(t("app.saved")); } catch (error) { said.replaceChildren(problem(error)); }
  });
  shown(entry.signed);
  return h("section", { class: "card" }, h("h2", {}, t("sign.title")), said, form);
}

function attack(state) {
  const method = state.job.method?.name ?? "suppress";
  const kinds = ATTACKS[method] ?? [];
  if (!kinds.length) return "";
  const said = h("div");
  const control = choice([["", t("sign.attack_none")], ...kinds.map((kind) => [kind, t(`attack.${kind}`)])], state.job.attack?.scenario ?? "");
  control.addEventListener("change", later(async () => {
    try { await api("PUT", `${here}/job/protect`, { sections: { attack: control.value ? { scenario: control.value } : null } }); said.replaceChildren(); say(t("app.saved")); } catch (error) {
      said.replaceChildren(error.mistakes ? note("bad", h("ul", {}, error.mistakes.map((m) => h("li", {}, `${m.text} ${m.hint ?? ""}`)))) : problem(error));
    }
  }, 0));
  return h("section", { class: "card" }, h("h2", {}, t("sign.attack")), field(t("sign.attack"), control, { help: t("sign.attack_help") }), said);
}

function job(state) {
  return h("section", { class: "card" }, h("h2", {}, t("sign.command")), h("p", { class: "help" }, t("sign.command_help")), h("pre", { tabindex: "0", id: "command" }, "cellguard protect job.toml"),
    h("h2", {}, t("sign.job")), h("pre", { tabindex: "0", id: "job" }, state.text));
}
