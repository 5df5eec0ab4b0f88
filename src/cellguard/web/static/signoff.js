// The sign-off sheet: one printed page with everything that author and checker put their names to.
import { api, choices, count, doFirst, figure, h, here, known, methodName, page, status, t, when } from "./dom.js";

const clock = (iso) => (iso ? when(new Date(iso).getTime() / 1000) : "");
const listed = (words) => words.filter(Boolean).join(", ");

export async function show(view) {
  const asked = new URLSearchParams(location.search).get("release");
  const releases = (await api("GET", here)).releases;
  if (!releases.length) { view.append(doFirst("sign.none", "protect")); return; }
  const name = releases.includes(asked) ? asked : releases[0];
  const [sheet, offered] = await Promise.all([api("GET", `${here}/signoff?release=${encodeURIComponent(name)}`), choices()]);
  view.append(h("div", { class: "row no-print" }, h("button", { type: "button", class: "main", id: "print", onclick: () => window.print() }, t("signoff.print")), h("a", { class: "button", href: page("sign", `?release=${encodeURIComponent(name)}`) }, t("signoff.back"))), draw(sheet, offered));
}

function draw(sheet, offered) {
  const audit = sheet.audit ?? {};
  const rows = [
    ["data", sheet.data.map((one) => listed([one.file, one.rows === null ? "" : t("signoff.rows", { n: count(one.rows) }), one.weights === null ? "" : t("signoff.weights", { n: count(Math.round(one.weights)), column: sheet.weight })]))],
    ["value", [listed([sheet.value.join(", ") || t("signoff.counted"), sheet.holding ? `${t("role.holding")}: ${sheet.holding}` : ""])]],
    ["dimensions", sheet.dimensions.map((d) => `${d.name}: ${listed([t(`data.hierarchy_${d.kind}`), d.detail])}`)],
    ["rules", [...sheet.rules.map((rule) => rule_words(rule)), t(sheet.insiders ? "signoff.insiders" : "signoff.no_insiders")]],
    ["method", [listed([methodName(sheet.method, offered.methods), ...Object.entries(sheet.options).map(([key, value]) => `${known(`option.${key}`, key)}: ${known(`value.${value}`, String(value))}`)]), `${t("sign.status")}: ${status(sheet.status)}`]],
    ["limits", [`${t("protect.limit")}: ${figure(sheet.limit_s, 0)}`, `${t("sign.repeatable")}: ${t(sheet.repeatable ? "app.yes" : "app.no")}`, ...sheet.warnings]],
    ["versions", [Object.entries(sheet.versions ?? {}).map(([key, value]) => `${key} ${value}`).join(", ")]],
    ["files", [sheet.files.join(", ")]],
    ["fingerprint", [h("code", {}, sheet.manifest)]],
  ];
  const safe = sheet.safe && audit.safe;
  const verdict = h("p", { class: "verdict" }, h("strong", {}, t(audit.checked === 0 ? "sign.nothing_checked" : safe ? "sign.safe" : "sign.not_safe")), `. ${t("signoff.covers", { checked: count(audit.checked ?? 0), exact: count(audit.exact ?? 0), unsafe: count(audit.unsafe ?? 0) })} ${t(sheet.insiders ? "signoff.against_all" : "signoff.against_external")} ${t("signoff.not_covered")}`);
  return h("article", { class: "sheet card" }, h("h2", {}, sheet.title), h("p", { class: "quiet" }, `${sheet.release} · ${when(sheet.made)}`), verdict,
    h("table", { class: "plain compact" }, h("tbody", {}, rows.map(([key, lines]) => h("tr", {}, h("th", { scope: "row" }, t(`signoff.${key}`)), h("td", {}, lines.filter((line) => line !== "").map((line) => h("span", { class: "line" }, line))))))),
    tables(sheet), names(sheet.signed));
}

function rule_words(rule) {
  const given = Object.entries(rule.given).map(([key, value]) => `${known(`rule_key.${key}`, key)}: ${value}`);
  return `${known(`rule.${rule.rule}.name`, rule.rule)} (${listed([...given, rule.cells === null ? "" : `${count(rule.cells)} ${t("rules.cells")}`])})`;
}

function tables(sheet) {
  const decided = sheet.signed?.checker?.tables ?? {};
  const box = (on) => (on ? "☒" : "☐");
  return h("table", { class: "plain compact" }, h("thead", {}, h("tr", {}, [t("look.table"), t("sign.approve"), t("sign.reject"), t("sign.comment")].map((words) => h("th", { scope: "col" }, words)))),
    h("tbody", {}, sheet.tables.map((name) => { const one = decided[name]; return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, box(one?.approved === true)), h("td", {}, box(one?.approved === false)), h("td", {}, one?.comment ?? "")); })));
}

function names(signed) {
  const one = (key, person) => h("div", { class: "signature" }, h("strong", {}, t(`signoff.${key}`)), h("span", { class: "written" }, person?.who ?? ""), h("span", {}, person ? clock(person.when) : t("signoff.open")), h("span", {}, person?.remark ?? ""));
  return h("div", { class: "two signatures" }, one("author", signed), one("checker", signed?.checker));
}
