// The card "List of tables" of the page Data: which tables are merged, which are protected together, and their job.
import { api, choice, field, h, here, problem, t } from "./dom.js";
import { ends } from "./files.js";

/** A folded card; nothing of the project changes. */
export function planCard(state) {
  const files = state.files.map((entry) => entry.name).filter((name) => ends(name, [".csv"]));
  if (!files.length) return "";
  const file = choice(files.map((name) => [name, name]), files[0]);
  const answer = h("div", { role: "status", id: "plan" });
  const button = h("button", { type: "button", id: "make-plan" }, t("plan.make"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    try { answer.replaceChildren(...planned(await api("POST", `${here}/plan`, { file: file.value }))); } catch (error) { answer.replaceChildren(problem(error)); }
    button.disabled = false;
  });
  return h("details", { class: "card", id: "plan-card" }, h("summary", {}, t("plan.title")), h("p", { class: "help" }, t("plan.help")),
    h("div", { class: "fields" }, field(t("plan.file"), file)), h("div", { class: "row" }, button), answer);
}

function planned(plan) {
  const clusters = Object.entries(plan.clusters);
  const link = (kind, content) => `data:${kind};charset=utf-8,${encodeURIComponent(content)}`;
  return [
    h("p", {}, t("plan.becomes", { listed: plan.listed, tables: plan.tables, clusters: clusters.length })),
    h("ul", { id: "clusters" }, clusters.map(([name, tables]) => h("li", {}, h("strong", {}, name), `: ${tables.join(", ")}`))),
    h("img", { src: link("image/svg+xml", plan.picture), alt: t("plan.picture"), id: "plan-picture" }),
    ...plan.jobs.map(([name, job]) => h("details", {}, h("summary", {}, name), h("a", { href: link("text/plain", job), download: name }, t("plan.download")), h("pre", {}, job))),
  ];
}
