// The page Releases: what was made before, and the ledger of what happened to it.
import { api, choices, doFirst, h, here, known, methodName, note, page, said, scrolling, stacked, status, t, when } from "./dom.js";

const clock = (iso) => when(new Date(iso).getTime() / 1000);

export async function show(view) {
  const [releases, ledger, offered] = await Promise.all([api("GET", `${here}/releases`), api("GET", `${here}/ledger`), choices()]);
  view.append(releases.length ? list(releases, offered.methods) : doFirst("releases.none", "protect"));
  if (ledger.entries.length) view.append(book(ledger, offered.methods));
}

function list(releases, methods) {
  const heads = ["name", "made", "method", "status", "verdict", "signed"];
  const verdict = (entry) => (entry.audit?.checked === 0 ? ["warn", t("sign.nothing_checked")] : entry.safe ? ["good", t("sign.safe")] : ["bad", t("sign.not_safe")]);
  const badge = ([kind, words]) => h("span", { class: `badge ${kind}` }, words);
  const signed = (entry) => (!entry.signed ? h("span", { class: "quiet" }, t("releases.not_signed")) : entry.signed.unchanged ? h("span", {}, `${entry.signed.who}, ${clock(entry.signed.when)}`, entry.signed.checker ? [h("br"), badge([entry.signed.checker.approved ? "good" : "bad", `${t(entry.signed.checker.approved ? "releases.what_approved" : "releases.what_rejected")}: ${entry.signed.checker.who}`])] : "") : badge(["bad", t("sign.signed_changed", { who: entry.signed.who, when: clock(entry.signed.when) })]));
  const query = (entry) => `?release=${encodeURIComponent(entry.name)}`;
  return scrolling(t("releases.title"), { class: "card scroll" }, stacked(h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, t(`releases.${name}`))), h("td"))),
    h("tbody", {}, releases.map((entry) => h("tr", {}, h("th", { scope: "row" }, entry.name), h("td", {}, when(entry.made)), h("td", {}, methodName(entry.method, methods)),
      h("td", {}, status(entry.status)), h("td", {}, badge(verdict(entry))), h("td", {}, signed(entry)),
      h("td", {}, h("a", { href: page("look", query(entry)) }, t("releases.look")), " · ", h("a", { href: page("sign", query(entry)) }, t("releases.sign")), " · ", h("a", { href: page("signoff", query(entry)) }, t("step.signoff")))))))));
}

function book(ledger, methods) {
  const lines = [...ledger.entries].reverse();
  const facts = (line) => (line.what !== "released" ? [line.who, line.remark].filter(Boolean).join(": ") : [methodName(line.method, methods), status(line.status)].join(", "));
  return h("section", { class: "card" }, h("h2", {}, t("releases.ledger")), h("p", { class: "help" }, t("releases.ledger_help")),
    note(ledger.whole ? "good" : "bad", h("p", {}, t(ledger.whole ? "releases.ledger_whole" : "releases.ledger_broken"))),
    ledger.problems.length ? note("bad", h("p", {}, t("releases.ledger_problems")), h("ul", { id: "ledger-problems" }, ledger.problems.map((text) => h("li", {}, said(text))))) : "",
    scrolling(t("releases.ledger"), {}, stacked(h("table", { class: "plain", id: "ledger" },
      h("thead", {}, h("tr", {}, ["when", "what", "name", "more", "fingerprint"].map((key) => h("th", { scope: "col" }, t(`releases.${key}`))))),
      h("tbody", {}, lines.map((line) => h("tr", {}, h("td", {}, clock(line.when)), h("td", {}, known(`releases.what_${line.what}`, line.what)), h("th", { scope: "row" }, line.release), h("td", {}, facts(line)),
        h("td", {}, h("code", { title: line.manifest }, String(line.manifest ?? "").slice(0, 12))))))))));
}
