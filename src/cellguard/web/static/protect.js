// The page Protect: what is written where, the run in the background, its progress, and how it ended.
import { api, field, figure, h, here, later, note, number, numberOf, page, problem, say, showMistakes, t, text, tick } from "./dom.js";
import { curve } from "./charts.js";

const FORMATS = ["csv", "parquet", "xlsx", "jj"];
const PHASES = ["tabulate", "flag", "protect", "audit", "attack", "compare", "write"];

export async function show(view) {
  const state = await api("GET", here);
  const job = state.job;
  const top = h("div");
  const title = text(job.title);
  const seed = number(job.seed ?? 0);
  const limit = number(job.limits?.time_limit_s ?? 3600);
  const folder = text(job.output?.folder ?? "release");
  const formats = new Map(FORMATS.map((name) => [name, tick((job.output?.formats ?? ["csv"]).includes(name))]));
  const mark = tick(job.output?.mark_primary);
  const output = () => ({ ...(job.output ?? {}), folder: folder.value.trim(), formats: FORMATS.filter((name) => formats.get(name).checked), mark_primary: mark.checked || null });
  const taken = h("div");
  const folderNote = () => taken.replaceChildren(state.releases.includes(folder.value.trim())
    ? note("warn", h("p", {}, `${t("protect.folder_taken")} `, h("button", { type: "button", class: "small", onclick: () => { folder.value = state.next_folder; folderNote(); changed(); } }, state.next_folder))) : "");
  const save = async () => {
    const sections = { title: title.value.trim() || null, seed: numberOf(seed), limits: { ...(job.limits ?? {}), time_limit_s: numberOf(limit) }, output: output() };
    const answer = await api("PUT", `${here}/job/protect`, { sections });
    showMistakes(view, top, answer.mistakes);
    return answer;
  };
  const refused = (error) => {
    if (error.mistakes) { showMistakes(view, top, error.mistakes); say(t("app.not_saved")); } else top.replaceChildren(problem(error));
  };
  const changed = later(async () => { try { await save(); say(t("app.saved")); } catch (error) { refused(error); } });
  for (const control of [title, seed, limit, folder, mark, ...formats.values()]) control.addEventListener("input", () => { folderNote(); changed(); });
  const files = h("div", { class: "field", role: "group", "aria-label": t("protect.formats"), "data-path": "output/formats" }, h("span", { class: "label" }, t("protect.formats")),
    h("div", { class: "row" }, [...formats].map(([name, control]) => field(name, control, { check: true }))), h("p", { class: "help" }, t("protect.formats_help")), h("p", { class: "mistake", hidden: true }));
  const work = new Work(save, refused);
  view.append(top, h("section", { class: "card" }, h("div", { class: "fields" },
    field(t("protect.name"), title, { path: ["title"] }), field(t("protect.folder"), folder, { help: t("protect.folder_help"), path: ["output", "folder"] }),
    field(t("protect.limit"), limit, { help: t("protect.limit_help"), path: ["limits", "time_limit_s"] }), field(t("protect.seed"), seed, { help: t("protect.seed_help"), path: ["seed"] }),
    files, field(t("protect.mark_primary"), mark, { check: true, help: t("protect.mark_primary_help"), path: ["output", "mark_primary"] })), taken), work.box);
  folderNote();
  if (state.mistakes.length) top.replaceChildren(note("warn", h("p", {}, t("protect.before")), h("ul", {}, state.mistakes.map((m) => h("li", {}, `${m.path.join(" › ")}: ${m.text}`)))));
  await work.resume();
}

class Work {
  constructor(save, refused) {
    this.events = [];
    this.start = h("button", { type: "button", class: "main", id: "start" }, t("protect.start"));
    this.stop = h("button", { type: "button", class: "danger", id: "stop", hidden: true }, t("protect.stop"));
    this.state = h("p", { id: "state", role: "status" });
    this.phases = h("ol", { class: "phases" });
    this.figures = h("p", { class: "quiet" });
    this.picture = h("div");
    this.result = h("div");
    this.box = h("section", { class: "card" }, h("h2", {}, t("protect.progress")), h("div", { class: "row" }, this.start, this.stop, h("span", { class: "help" }, t("protect.stop_help"))),
      this.state, this.phases, this.figures, this.picture, this.result);
    this.start.addEventListener("click", async () => {
      try {
        const answer = await save();
        if (answer.mistakes.length) return;
        this.events = [];
        await api("POST", `${here}/work/protect`);
        this.listen();
      } catch (error) { refused(error); }
    });
    this.stop.addEventListener("click", () => api("DELETE", `${here}/work/protect`));
  }

  async resume() {
    const work = await api("GET", `${here}/work/protect`);
    this.events = work.events;
    this.draw(work.state);
    if (["waiting", "running", "stopping"].includes(work.state)) { this.events = []; this.listen(); }
  }

  listen() {
    const source = new EventSource(`/api${here}/work/protect/events`);
    let now = "running";
    source.addEventListener("message", (event) => { this.events.push(JSON.parse(event.data)); this.draw(now); });
    source.addEventListener("state", (event) => {
      now = JSON.parse(event.data);
      this.draw(now);
      if (!["waiting", "running", "stopping"].includes(now)) source.close();
    });
    this.draw("waiting");
  }

  draw(state) {
    const busy = ["waiting", "running", "stopping"].includes(state);
    this.start.disabled = busy;
    this.stop.hidden = !busy;
    this.stop.disabled = state === "stopping";
    this.state.textContent = `${t(`state.${state}`)}${busy ? ` – ${t("protect.goes_on")}` : ""}`;
    this.state.dataset.state = state;
    const begun = this.events.filter((event) => event.phase);
    const now = begun.at(-1);
    const names = begun.map((event) => event.phase);
    const open = PHASES.filter((name) => names.includes(name) || !["attack", "compare"].includes(name));
    this.phases.replaceChildren(...(begun.length ? open.map((name) => h("li", { class: !names.includes(name) ? "" : name === now.phase && busy ? "now" : "done" }, t(`phase.${name}`))) : []));
    const points = this.events.filter((event) => "best" in event);
    const last = points.at(-1);
    const notes = this.events.filter((event) => event.note).map((event) => event.note);
    const words = [...notes];
    if (last) {
      words.push(`${t("protect.best")} ${figure(last.best, 0)}`);
      if (last.bound) words.push(`${t("protect.bound")} ${figure(last.bound, 0)}`, `${t("protect.gap")} ${figure((100 * (last.best - last.bound)) / Math.abs(last.best || 1), 2)} %`);
    }
    this.figures.textContent = words.join(" · ");
    this.picture.replaceChildren(...(points.length > 1 ? [h("p", { class: "help" }, `${t("protect.curve")}. ${t("protect.curve_help")}`), curve(points)] : []));
    this.end(state, this.events.at(-1) ?? {});
  }

  end(state, last) {
    const result = last.result ?? {};
    if (state === "done") {
      const query = `?release=${encodeURIComponent(result.folder)}`;
      const facts = [`${t("sign.status")}: ${String(result.status ?? "").replaceAll("_", " ")}`];
      if (result.primary !== undefined) facts.push(`${result.primary} + ${result.secondary}`);
      if (result.audit) facts.push(`${result.audit.checked} ${t("sign.checked")}`);
      this.result.replaceChildren(note("good", h("p", {}, h("strong", {}, t("state.done"))), h("p", {}, facts.join(" · ")),
        h("div", { class: "row" }, h("a", { class: "button main", href: page("look", query) }, t("protect.look")), h("a", { class: "button", href: page("sign", query) }, t("protect.to_sign")))));
    } else if (last.error) this.result.replaceChildren(problem(last.error));
    else this.result.replaceChildren();
  }
}
