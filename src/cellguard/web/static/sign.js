// The page Sign: the audit, the reports, the files, the job, the command, and the signature.
import { api, choice, choices, doFirst, field, fieldWrong, figure, h, here, known, later, methodName, note, page, problem, say, status, t, text, tick, when } from "./dom.js";

export async function show(view) {
  const [state, releases, offered, work] = await Promise.all([api("GET", here), api("GET", `${here}/releases`), choices(), api("GET", `${here}/work/protect`)]);
  if (!releases.length) { view.append(doFirst("sign.none", "protect"), job(state, null)); return; }
  const asked = new URLSearchParams(location.search).get("release");
  const select = choice(releases.map((entry) => [entry.name, entry.name]), releases.some((entry) => entry.name === asked) ? asked : releases[0].name);
  const box = h("div");
  const draw = () => {
    history.replaceState(null, "", page("sign", `?release=${encodeURIComponent(select.value)}`));
    const entry = releases.find((each) => each.name === select.value);
    box.replaceChildren(...one(entry, offered.methods, attack(state, entry, offered, work)), job(state, entry));
  };
  select.addEventListener("change", draw);
  view.append(h("div", { class: "card fields" }, field(t("sign.release"), select)), box);
  draw();
}

function one(entry, methods, attacks) {
  const audit = entry.audit ?? {};
  const verdict = audit.checked === 0 ? ["warn", "sign.nothing_checked"] : entry.safe && audit.safe ? ["good", "sign.safe"] : ["bad", "sign.not_safe"];
  const facts = [[t("sign.checked"), audit.checked], [t("sign.exact"), audit.exact], [t("sign.unsafe"), audit.unsafe], [t("releases.method"), methodName(entry.method, methods)],
    [t("sign.status"), status(entry.status)], [t("sign.repeatable"), entry.repeatable ? t("app.yes") : t("app.no")]];
  return [h("section", { class: "card" }, h("h2", {}, t("sign.audit")), note(verdict[0], h("p", { id: "verdict" }, h("strong", {}, t(verdict[1])))),
    h("dl", { class: "facts" }, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value ?? "–"))])), checking(entry)), attacks,
  h("section", { class: "card" }, h("h2", {}, t("sign.reports")), h("ul", {}, ["public", "internal"].filter((part) => entry.files[part]?.includes("report.html")).map((part) =>
    h("li", {}, h("a", { href: `/api${here}/report/${part}?release=${encodeURIComponent(entry.name)}`, target: "_blank", rel: "noopener" }, t(`sign.${part}_report`))))),
  h("h2", {}, t("sign.files")), h("p", {}, h("a", { class: "button", id: "zip", href: `/api${here}/public.zip?release=${encodeURIComponent(entry.name)}`, download: "" }, t("sign.zip"))), h("p", { class: "help" }, t("sign.files_help")), h("div", { class: "two" }, ["public", "internal"].map((part) => h("div", {}, h("h3", {}, t(`sign.${part}_files`)), h("ul", {}, (entry.files[part] ?? []).map((name) =>
    h("li", {}, h("a", { href: `/api${here}/files/${part}/${encodeURIComponent(name)}?release=${encodeURIComponent(entry.name)}`, download: "" }, `${part === "public" ? "PUBLIC" : "CONFIDENTIAL"} · ${name}`)))))))),
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
  const sheet = h("a", { class: "button", id: "sheet", href: page("signoff", `?release=${encodeURIComponent(entry.name)}`) }, t("sign.sheet"));
  const second = h("div");
  const shown = (signed) => {
    if (!signed) return;
    const words = { who: signed.who, when: clock(signed.when) };
    said.replaceChildren(note(signed.unchanged ? "good" : "bad", h("p", {}, t(signed.unchanged ? "sign.signed" : "sign.signed_changed", words)), signed.remark ? h("p", {}, signed.remark) : "", signed.unchanged ? h("p", { class: "help" }, t("sign.protected")) : ""));
    form.hidden = true;
    if (signed.unchanged) second.replaceChildren(signed.checker ? verdict(signed.checker) : checker(entry, (made) => second.replaceChildren(verdict(made.checker))));
  };
  const who = text("", { autocomplete: "name" });
  const remark = text("");
  const read = tick(false);
  const whoField = field(t("sign.who"), who, { help: t("sign.who_help"), path: ["who"] });
  const readField = field(t("sign.read"), read, { check: true });
  const form = h("form", { novalidate: true }, h("div", { class: "fields" }, whoField, field(t("sign.remark"), remark, { help: t("sign.remark_help") })),
    readField, h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, t("sign.sign"))));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    fieldWrong(readField, read.checked ? "" : t("sign.read_needed"));
    fieldWrong(whoField, who.value.trim() ? "" : t("sign.who_needed"));
    if (!read.checked || !who.value.trim()) return;
    try { shown(await api("POST", `${here}/releases/sign`, { release: entry.name, who: who.value, remark: remark.value, read: read.checked, manifest: entry.fingerprint })); say(t("app.saved")); } catch (error) { said.replaceChildren(problem(error)); }
  });
  shown(entry.signed);
  return h("section", { class: "card" }, h("h2", {}, t("sign.title")), h("p", { class: "help" }, t("sign.two_people")), h("div", { class: "row" }, sheet), said, form, second);
}

const clock = (iso) => when(new Date(iso).getTime() / 1000);

/** What the second person decided. */
function verdict(found) {
  return note(found.approved ? "good" : "bad", h("p", { id: "checked" }, h("strong", {}, t(found.approved ? "sign.approved" : "sign.rejected", { who: found.who, when: clock(found.when) }))), found.remark ? h("p", {}, found.remark) : "",
    h("ul", {}, Object.entries(found.tables).map(([name, one]) => h("li", {}, `${name}: ${t(one.approved ? "sign.approve" : "sign.reject")}${one.comment ? ` – ${one.comment}` : ""}`))), found.approved ? "" : h("p", {}, t("sign.rejected_help")));
}

/** The form of the second person: a verdict and a comment for each table. */
function checker(entry, done) {
  const who = text("", { autocomplete: "off" });
  const remark = text("");
  const whoField = field(t("sign.checker"), who, { help: t("sign.checker_help") });
  const said = h("div", { role: "status" });
  const lines = entry.tables.map((name, k) => {
    const verdicts = ["approve", "reject"].map((key) => h("input", { type: "radio", name: `verdict-${k}`, value: key }));
    const comment = text("");
    const box = h("fieldset", { class: "rule" }, h("legend", {}, name), h("div", { class: "row" }, verdicts.map((radio) => field(t(`sign.${radio.value}`), radio, { check: true }))), field(t("sign.comment"), comment), h("p", { class: "mistake", hidden: true }));
    return { name, verdicts, comment, box };
  });
  const form = h("form", { novalidate: true, id: "checker" }, h("h3", {}, t("sign.second")), h("p", { class: "help" }, t("sign.second_help")), lines.map((line) => line.box), h("div", { class: "fields" }, whoField, field(t("sign.remark"), remark, { help: t("sign.remark_help") })),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, t("sign.second_save"))), said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    for (const line of lines) { const open = !line.verdicts.some((radio) => radio.checked); fieldWrong(line.box, open ? t("sign.verdict_needed") : ""); if (open) return; }
    fieldWrong(whoField, who.value.trim() ? "" : t("sign.who_needed"));
    if (!who.value.trim()) return;
    const tables = Object.fromEntries(lines.map((line) => [line.name, { approved: line.verdicts[0].checked, comment: line.comment.value }]));
    try { done(await api("POST", `${here}/releases/verdict`, { release: entry.name, who: who.value, remark: remark.value, tables })); say(t("app.saved")); } catch (error) { said.replaceChildren(problem(error)); }
  });
  return form;
}

function attack(state, entry, offered, work) {
  const method = state.job.method?.name ?? offered.methods[0].name;
  const kinds = offered.attacks.filter((each) => each.method === method).map((each) => each.scenario);
  const made = work.events.at(-1)?.result;
  const result = made?.folder === entry.name ? made.attack : null;
  if (!kinds.length && !result) return "";
  const said = h("div");
  const control = choice([["", t("sign.attack_none")], ...kinds.map((kind) => [kind, known(`attack.${kind}`, kind)])], state.job.attack?.scenario ?? "");
  control.addEventListener("change", later(async () => {
    try {
      await api("PUT", `${here}/job/protect`, { sections: { attack: control.value ? { scenario: control.value } : null } });
      said.replaceChildren(control.value ? note("", h("p", {}, t("sign.attack_next")), h("a", { class: "button", href: page("protect") }, t("look.again"))) : "");
      say(t("app.saved"));
    } catch (error) {
      said.replaceChildren(error.mistakes ? note("bad", h("ul", {}, error.mistakes.map((m) => h("li", {}, `${m.text} ${m.hint ?? ""}`)))) : problem(error));
    }
  }, 0));
  const plain = (value) => (typeof value === "number" ? figure(value, 3) : typeof value === "boolean" ? t(value ? "app.yes" : "app.no") : String(value ?? "–"));
  const facts = Object.entries(result ?? {}).filter(([, value]) => value === null || typeof value !== "object");
  return h("section", { class: "card" }, h("h2", {}, t("sign.attack")), h("p", { class: "help" }, t("sign.attack_help")),
    facts.length ? h("dl", { class: "facts", id: "attacked" }, facts.flatMap(([name, value]) => [h("dt", {}, known(`attack.${name}`, name.replaceAll("_", " "))), h("dd", {}, plain(value))])) : "",
    kinds.length ? field(t("sign.attack_choose"), control) : "", said);
}

function copying(words) {
  const button = h("button", { type: "button", class: "small" }, t("sign.copy"));
  button.addEventListener("click", async () => { await navigator.clipboard.writeText(words); say(t("sign.copied")); });
  return button;
}

function job(state, entry) {
  const command = `cd ${/^[\w./~-]+$/.test(state.path) ? state.path : `'${state.path.replaceAll("'", "'\\''")}'`}\ncellguard protect job.toml`;
  return h("section", { class: "card" }, h("h2", {}, t("sign.command")), h("p", { class: "help" }, t("sign.command_help")),
    entry && !entry.same_job ? note("warn", h("p", {}, t("sign.job_changed"))) : "",
    entry && entry.repeatable === false ? note("warn", h("p", {}, t("sign.not_repeatable"))) : "",
    h("pre", { tabindex: "0", id: "command" }, command), copying(command),
    h("h2", { class: "later" }, t("sign.job")), h("pre", { tabindex: "0", id: "job" }, state.text), copying(state.text));
}
