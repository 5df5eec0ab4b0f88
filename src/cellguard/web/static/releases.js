// The page Releases: what was made before.
import { api, h, here, note, page, t, when } from "./dom.js";

export async function show(view) {
  const releases = await api("GET", `${here}/releases`);
  if (!releases.length) { view.append(note("", h("p", {}, t("releases.none")))); return; }
  const heads = ["name", "made", "method", "status", "verdict", "signed"];
  const verdict = (entry) => (entry.audit?.checked === 0 ? t("sign.nothing_checked") : entry.safe ? t("sign.safe") : t("sign.not_safe"));
  const signed = (entry) => (!entry.signed ? "–" : entry.signed.unchanged ? entry.signed.who : t("sign.signed_changed", { who: entry.signed.who, when: entry.signed.when }));
  const query = (entry) => `?release=${encodeURIComponent(entry.name)}`;
  view.append(h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": t("releases.title") }, h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, t(`releases.${name}`))), h("td"))),
    h("tbody", {}, releases.map((entry) => h("tr", {}, h("th", { scope: "row" }, entry.name), h("td", {}, when(entry.made)), h("td", {}, t(`method.${entry.method}.name`)),
      h("td", {}, String(entry.status ?? "").replaceAll("_", " ")), h("td", {}, verdict(entry)), h("td", {}, signed(entry)),
      h("td", {}, h("a", { href: page("look", query(entry)) }, t("releases.look")), " · ", h("a", { href: page("sign", query(entry)) }, t("releases.sign")))))))));
}
