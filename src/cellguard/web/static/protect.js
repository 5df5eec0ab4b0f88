// The page Protect: what is written where, the run in the background, its progress, and how it ended.
import { BUSY, api, choices, count, field, figure, h, here, known, later, notSaved, note, number, numberOf, page, problem, said, say, scrolling, showMistakes, status, t, text, tick } from "./dom.js";
import { curve } from "./charts.js";
import { overTime } from "./over_time.js";

const AGAIN = 5;
const PHASES = ["tabulate", "flag", "protect", "audit", "attack", "compare", "write"];

export async function show(view) {
  const [state, offered] = await Promise.all([api("GET", here), choices()]);
  const { job } = state;
  const FORMATS = offered.formats;
  const top = h("div");
  const title = text(job.title);
  const seed = number(job.seed || null);
  const limit = number(job.limits?.time_limit_s ?? offered.time_limit_s);
  const folder = text(job.output?.folder ?? "release");
  const formats = new Map(FORMATS.map((name) => [name, tick((job.output?.formats ?? ["csv"]).includes(name))]));
  const mark = tick(job.output?.mark_primary);
  const again = tick(job.ledger?.again);
  const time = overTime(job, () => changed());
  const output = () => ({ ...(job.output ?? {}), folder: folder.value.trim(), formats: FORMATS.filter((name) => formats.get(name).checked), mark_primary: mark.checked || null });
  const taken = h("div");
  const isSigned = () => state.signed.includes(folder.value.trim());
  const folderNote = () => taken.replaceChildren(isSigned() ? note("", h("p", {}, t("protect.folder_signed", { folder: folder.value.trim(), next: state.next_version }))) : state.releases.includes(folder.value.trim())
    ? note("warn", h("p", {}, `${t("protect.folder_taken")} `, h("button", { type: "button", class: "small", onclick: () => { folder.value = state.next_folder; folderNote(); changed(); } }, state.next_folder))) : "");
  const save = async () => {
    const sections = { title: title.value.trim() || null, seed: numberOf(seed), limits: { ...(job.limits ?? {}), time_limit_s: numberOf(limit) }, output: output(), ledger: time.ledger({ again: again.checked }), derived: time.derived().filter((one) => one.name) };
    const answer = await api("PUT", `${here}/job/protect`, { sections });
    showMistakes(view, top, answer.mistakes);
    return answer;
  };
  const refused = (error) => notSaved(view, top, error);
  const changed = later(async () => { try { await save(); say(t("app.saved")); } catch (error) { refused(error); } });
  for (const control of [title, seed, limit, folder, mark, again, ...formats.values()]) control.addEventListener("input", () => { folderNote(); changed(); });
  const files = h("div", { class: "field", role: "group", "aria-label": t("protect.formats"), "data-path": "output/formats" }, h("span", { class: "label" }, t("protect.formats")),
    h("div", { class: "row" }, [...formats].map(([name, control]) => field(name, control, { check: true }))), h("p", { class: "help" }, t("protect.formats_help")), h("p", { class: "mistake", hidden: true }));
  const method = offered.methods.find((each) => each.name === (job.method?.name ?? offered.methods[0].name));
  const longer = () => { limit.value = String(AGAIN * Math.max(Number(limit.value) || 0, 60)); };
  const work = new Work({ save: async () => { if (isSigned()) { folder.value = state.next_version; folderNote(); } return save(); }, refused, longer });
  view.append(top, h("section", { class: "card" }, h("div", { class: "fields" },
    field(t("protect.name"), title, { path: ["title"] }), field(t("protect.folder"), folder, { help: t("protect.folder_help"), path: ["output", "folder"] }),
    field(t("protect.limit"), limit, { help: t("protect.limit_help"), path: ["limits", "time_limit_s"] }), field(t("protect.seed"), seed, { help: t("protect.seed_help"), path: ["seed"] }),
    files, field(t("protect.mark_primary"), mark, { check: true, help: t("protect.mark_primary_help"), path: ["output", "mark_primary"] }),
    field(t("protect.again"), again, { check: true, help: t("protect.again_help"), path: ["ledger", "again"] })), taken), time.box, work.box);
  view.querySelector("#method").replaceChildren(`${t("releases.method")}: `, h("strong", {}, known(`method.${method?.name}.name`, method?.title ?? "")), " · ", h("a", { href: page("method") }, t("protect.other_method")));
  folderNote();
  if (state.mistakes.length) top.replaceChildren(note("warn", h("p", {}, t("protect.before")), h("ul", {}, state.mistakes.map((m) => h("li", {}, `${m.path.join(" › ")}: ${said(m.text)}`)))));
  await work.resume();
}

class Work {
  constructor({ save, refused, longer }) {
    this.events = [];
    this.begin = Date.now();
    this.save = save;
    this.refused = refused;
    this.longer = longer;
    setInterval(() => this.tick(), 1000);
    this.start = h("button", { type: "button", class: "main", id: "start" }, t("protect.start"));
    this.stop = h("button", { type: "button", class: "danger", id: "stop", hidden: true }, t("protect.stop"));
    this.state = h("p", { id: "state", role: "status" });
    this.clock = h("span", { class: "quiet", id: "clock" });
    this.phases = h("ol", { class: "phases" });
    this.figures = h("p", { class: "quiet" });
    this.picture = scrolling(t("protect.curve"), { hidden: true });
    this.result = h("div");
    this.box = h("section", { class: "card" }, h("h2", {}, t("protect.progress")), h("p", { id: "method" }), h("div", { class: "row" }, this.start, this.stop, h("span", { class: "help" }, t("protect.stop_help"))),
      this.state, this.result, this.phases, this.figures, this.picture);
    this.start.addEventListener("click", () => this.run());
    this.stop.addEventListener("click", () => api("DELETE", `${here}/work/protect`));
  }

  async run() {
    try {
      const answer = await this.save();
      if (answer.mistakes.length) return;
      this.events = [];
      this.begin = Date.now();
      await api("POST", `${here}/work/protect`);
      this.listen();
    } catch (error) { this.refused(error); }
  }

  async resume() {
    const work = await api("GET", `${here}/work/protect`);
    this.events = work.events;
    this.begin = Date.now() - 1000 * work.seconds;
    this.draw(work.state);
    if (BUSY.includes(work.state)) { this.events = []; this.listen(); }
  }

  /** Say how long it takes already, and how long the method may take at most. */
  tick() {
    if (!BUSY.includes(this.state.dataset.state)) return;
    const now = (Date.now() - this.begin) / 1000;
    const phase = this.events.filter((event) => event.phase).at(-1);
    const left = phase?.limit_s ? Math.max(0, phase.limit_s - (now - phase.t)) : null;
    this.clock.textContent = [`${figure(now, 0)} s`, left === null ? "" : t("protect.limit_left", { n: figure(left, 0) })].filter(Boolean).join(" · ");
  }

  listen() {
    const source = new EventSource(`/api${here}/work/protect/events`);
    let now = "running";
    source.addEventListener("message", (event) => { this.events.push(JSON.parse(event.data)); this.draw(now); });
    source.addEventListener("state", (event) => {
      now = JSON.parse(event.data);
      this.draw(now);
      if (!BUSY.includes(now)) source.close();
    });
    this.draw("waiting");
  }

  draw(state) {
    const busy = BUSY.includes(state);
    this.start.disabled = busy;
    this.stop.hidden = !busy;
    this.stop.disabled = state === "stopping";
    this.state.dataset.state = state;
    this.state.className = busy ? "busy" : "";
    this.state.replaceChildren(h("strong", {}, t(`state.${state}`)), busy ? ` – ${t("protect.goes_on")} ` : "", busy ? this.clock : "");
    const begun = this.events.filter((event) => event.phase);
    const now = begun.at(-1);
    const names = begun.map((event) => event.phase);
    const open = PHASES.filter((name) => names.includes(name) || !["attack", "compare"].includes(name));
    this.phases.replaceChildren(...(begun.length ? open.map((name) => h("li", { class: !names.includes(name) ? "" : name === now.phase && busy ? "now" : "done" }, t(`phase.${name}`))) : []));
    const points = this.events.filter((event) => "best" in event);
    const last = points.at(-1);
    const notes = this.events.filter((event) => event.note).map((event) => event.note);
    const words = [];
    if (last) {
      words.push(`${t("protect.best")} ${figure(last.best, 0)}`);
      if (last.bound) words.push(`${t("protect.bound")} ${figure(last.bound, 0)}`, `${t("protect.gap")} ${figure((100 * (last.best - last.bound)) / Math.abs(last.best || 1), 2)} %`);
    }
    this.figures.replaceChildren(...[...notes, words.join(" · ")].filter(Boolean).map((line) => h("span", { class: "line" }, line)));
    this.picture.hidden = points.length < 2;
    this.picture.replaceChildren(...(points.length > 1 ? [h("p", { class: "help" }, `${t("protect.curve")}. ${t("protect.curve_help")}`), curve(points)] : []));
    this.end(state, this.events.at(-1) ?? {});
  }

  end(state, last) {
    const result = last.result ?? {};
    if (state === "done") {
      const query = `?release=${encodeURIComponent(result.folder)}`;
      const facts = [`${t("sign.status")}: ${status(result.status)}`];
      if (result.primary !== undefined) facts.push(t("protect.withheld", { primary: count(result.primary), secondary: count(result.secondary) }));
      if (result.audit) facts.push(`${count(result.audit.checked)} ${t("sign.checked")}`);
      this.result.replaceChildren(note("good", h("p", {}, facts.join(" · ")),
        h("div", { class: "row" }, h("a", { class: "button main", href: page("look", query) }, t("protect.look")), h("a", { class: "button", href: page("sign", query) }, t("protect.to_sign")))));
    } else if (last.error) {
      const more = h("button", { type: "button", class: "main", id: "longer", onclick: () => { this.longer(); this.run(); } }, t("protect.longer"));
      this.result.replaceChildren(problem(last.error), h("div", { class: "row" }, result.status === "time_limit" ? more : "", state === "refused" ? h("a", { class: "button", href: page("method") }, t("protect.other_method")) : ""));
    } else this.result.replaceChildren();
  }
}
