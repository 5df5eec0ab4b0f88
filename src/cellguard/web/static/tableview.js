// A table with its tools: which dimensions lie where, search, folding, and everything about the chosen cell.
import { api, choice, count, field, h, here, note, page, problem, said, say, t, text, written } from "./dom.js";
import { Grid } from "./grid.js";
import { rangePicture } from "./charts.js";

const prepared = ({ name, ...axis }) => ({ ...axis, title: name });

const against = ({ attacker }) => `${t("look.range_of")} ${attacker === "external" ? t("look.external") : attacker}`;

/** Put a table into a box. release: name or null; beside: a second release or undefined; decisions: whether cells can be decided. */
export async function tableView(box, { release, beside, decisions = true }) {
  const loading = h("p", { class: "quiet" }, t("app.loading"));
  box.append(loading);
  let sources;
  try {
    const wanted = beside === undefined ? [release] : [release, beside];
    sources = await Promise.all(wanted.map(async (name) => ({ name, facts: await api("POST", `${here}/table`, { release: name }) })));
  } catch (error) { loading.replaceWith(problem(error)); return; }
  loading.remove();
  new Panel(box, sources, decisions);
}

/** Which table and which dimensions lie where is a part of the address: it can be bookmarked. No code is. */
const address = () => new URLSearchParams(location.search);
function addressed(values) {
  const query = address();
  for (const [key, value] of Object.entries(values)) if (value === null) query.delete(key); else query.set(key, value);
  history.replaceState(null, "", `${location.pathname}?${query}`);
}

class Panel {
  constructor(box, sources, decisions) {
    this.sources = sources;
    this.decisions = decisions;
    const { views } = sources[0].facts;
    const asked = views.findIndex((view) => view.name === address().get("table"));
    this.view = choice(views.map((view, k) => [String(k), view.name]), String(Math.max(asked, 0)));
    this.rows = h("select");
    this.columns = h("select");
    this.filters = h("div", { class: "fields axes" });
    this.detail = h("aside", { class: "card", "aria-live": "polite", "aria-label": t("look.cell") }, h("p", { class: "quiet" }, t("look.hint")));
    this.grids = sources.map((source) => this.gridOf(source));
    this.sync();
    this.search = text("", { type: "search" });
    this.said = h("span", { class: "quiet", role: "status" });
    this.step = -1;
    this.search.addEventListener("input", () => { this.step = -1; this.next(); });
    this.search.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); this.next(); } });
    const tools = h("div", { class: "row" }, h("button", { type: "button", class: "small", id: "swap", onclick: () => this.swap() }, t("look.swap")),
      h("button", { type: "button", class: "small", onclick: () => this.grids.forEach((grid) => grid.foldAll(true)) }, t("look.fold_all")),
      h("button", { type: "button", class: "small", onclick: () => this.grids.forEach((grid) => grid.foldAll(false)) }, t("look.unfold_all")),
      h("button", { type: "button", class: "small", onclick: () => this.nextMarked() }, t("look.next_withheld")));
    const searching = h("div", { class: "row end" }, field(t("look.search"), this.search), h("button", { type: "button", onclick: () => this.next() }, t("look.search_next")), this.said);
    this.fixed = [views.length > 1 ? field(t("look.table"), this.view) : null, field(t("look.rows"), this.rows), field(t("look.columns"), this.columns)].filter(Boolean);
    box.append(this.filters, h("div", { class: "row tools" }, searching, tools),
      h("div", { class: this.grids.length > 1 ? "looking below" : "looking" }, h("div", { class: this.grids.length > 1 ? "beside two-up" : "beside" }, this.grids.map((grid, k) =>
        h("div", {}, this.grids.length > 1 ? h("h3", {}, sources[k].name ?? t("look.as_it_is")) : "", this.legend(sources[k]), grid.box))), this.detail));
    this.view.addEventListener("change", () => { addressed({ table: views[Number(this.view.value)].name, rows: null, columns: null }); this.chooseView(); });
    this.rows.addEventListener("change", () => this.moved(this.rows, this.columns));
    this.columns.addEventListener("change", () => this.moved(this.columns, this.rows));
    this.chooseView();
  }

  /** A dimension is put on an axis; where it lay on the other one, the two change places. */
  moved(changed, other) {
    if (changed.value === other.value) other.value = changed.before;
    if (this.rows.value === "") this.rows.value = String([...this.axes.keys()].find((k) => String(k) !== this.columns.value) ?? 0);
    this.chooseAxes();
    addressed({ rows: this.rowAxis.title, columns: this.columnAxis?.title ?? "" });
  }

  gridOf(source) {
    const body = () => ({ release: source.name, view: Number(this.view.value), rows: this.rowAxis.index, columns: this.columnAxis?.index ?? null, at: this.at() });
    const grid = new Grid({
      label: source.name ?? t("look.as_it_is"), kinds: source.facts.kinds, wide: this.sources.some((each) => each.facts.counts.interval),
      ask: (down, across) => api("POST", `${here}/table/window`, { ...body(), down, across }),
      opened: (codes) => this.open(source, codes),
    });
    grid.failed = (error) => this.detail.replaceChildren(problem(error));
    grid.body = body;
    return grid;
  }

  sync() {
    if (this.grids.length < 2) return;
    this.grids.forEach((grid, k) => { grid.scrolled = (top, left) => {
      const other = this.grids[1 - k].box;
      if (Math.abs(other.scrollTop - top) > 1 || Math.abs(other.scrollLeft - left) > 1) other.scrollTo(left, top);
    }; });
  }

  chooseView() {
    this.axes = this.sources[0].facts.views[Number(this.view.value)].axes.map(prepared);
    const options = this.axes.map((axis, k) => h("option", { value: String(k) }, axis.title));
    this.rows.replaceChildren(...options);
    this.columns.replaceChildren(h("option", { value: "" }, t("look.no_columns")), ...options.map((option) => option.cloneNode(true)));
    const long = this.axes.reduce((best, axis, k) => (axis.id.length > this.axes[best].id.length ? k : best), 0);
    const asked = (key) => this.axes.findIndex((axis) => axis.title === address().get(key));
    const [r, c] = [asked("rows"), asked("columns")];
    this.rows.value = String(r >= 0 ? r : long);
    const other = this.axes.length > 1 ? [...this.axes.keys()].find((k) => String(k) !== this.rows.value) : "";
    this.columns.value = c >= 0 && c !== r ? String(c) : address().get("columns") === "" ? "" : String(other);
    this.chooseAxes();
  }

  swap() {
    if (this.columns.value === "") return;
    [this.rows.value, this.columns.value] = [this.columns.value, this.rows.value];
    this.chooseAxes();
    addressed({ rows: this.rowAxis.title, columns: this.columnAxis.title });
  }

  chooseAxes() {
    this.rows.before = this.rows.value;
    this.columns.before = this.columns.value;
    this.rowAxis = this.axes[Number(this.rows.value)];
    this.columnAxis = this.columns.value === "" ? null : this.axes[Number(this.columns.value)];
    this.others = this.axes.filter((axis) => axis !== this.rowAxis && axis !== this.columnAxis).map((axis) => {
      const control = choice(axis.id.map((id, k) => [String(id), `${"  ".repeat(axis.depth[k])}${axis.label[k] ? `${axis.code[k]} ${axis.label[k]}` : axis.code[k]}`]), String(axis.id[0]));
      control.addEventListener("change", () => this.grids.forEach((grid) => grid.refreshCells()));
      return { axis, control };
    });
    this.filters.replaceChildren(...this.fixed, ...this.others.map(({ axis, control }) => field(`${t("look.filter")}: ${axis.title}`, control)));
    this.grids.forEach((grid) => grid.lay(this.rowAxis, this.columnAxis));
  }

  at() { return Object.fromEntries(this.others.map(({ axis, control }) => [axis.index, Number(control.value)])); }

  next() {
    const words = this.search.value.trim();
    if (!words) { this.said.textContent = ""; return; }
    this.step += 1;
    const [k, n] = this.grids.map((grid) => grid.search(words, this.step))[0];
    this.said.textContent = n ? t("look.search_found", { k, n }) : t("look.search_none");
  }

  async nextMarked() {
    const [grid] = this.grids;
    try {
      const found = await api("POST", `${here}/table/marked`, { ...grid.body(), down: grid.rows.seen.map((k) => grid.rows.id[k]), across: grid.columns ? grid.across.map((k) => grid.columns.id[k]) : [] });
      const [r, c] = grid.at;
      const next = found.find(([y, x]) => y > r || (y === r && x > c)) ?? found[0];
      if (!next) return;
      this.grids.forEach((each) => each.go(...next));
      grid.openCell(...next);
    } catch (error) { this.detail.replaceChildren(problem(error)); }
  }

  legend(source) {
    const words = (kind) => t(source.name === null && kind === "published" ? "kind.open" : `kind.${kind}`);
    return h("ul", { class: "legend", "aria-label": t("look.legend") }, Object.entries(source.facts.counts).map(([kind, n]) => h("li", {}, h("span", { class: kind }, count(n)), words(kind))));
  }

  // ------------------------------------------------------------ one cell

  async open(source, codes) {
    const body = { release: source.name, view: Number(this.view.value), codes: { ...this.at(), ...codes } };
    try {
      const cell = await api("POST", `${here}/table/cell`, body);
      this.detail.replaceChildren(...this.about(source, cell, body));
    } catch (error) { this.detail.replaceChildren(problem(error)); }
  }

  about(source, cell, body) {
    const pairs = [...Object.entries(cell.codes), [t("look.shown"), source.name === null ? null : written(cell.shown) || "x"], [t("look.true"), written(cell.true)], [t("look.contributors"), cell.contributors === null ? null : count(cell.contributors)]];
    const out = [h("h2", {}, t("look.cell")), h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])),
      h("p", {}, h("span", { class: `kind ${cell.kind}` }, t(source.name === null && cell.kind === "published" ? "kind.open" : `kind.${cell.kind}`)))];
    if (cell.reasons.length) out.push(h("h3", {}, t("look.reasons")), h("ul", {}, cell.reasons.map((reason) => h("li", {}, said(reason)))));
    if (cell.kind === "secondary") out.push(this.protects(body), this.range(cell, body));
    out.push(...this.ranges(source, cell));
    if (this.decisions) out.push(this.deciding(cell));
    return out;
  }

  protects(body) {
    const place = h("div", {}, h("p", {}, t("look.secondary")));
    const button = h("button", { type: "button" }, t("look.protects"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const found = await api("POST", `${here}/table/protects`, body);
        const words = found.cells.length ? t("look.protects_found") : found.known ? t("look.protects_none") : t("look.protects_open");
        place.append(h("p", {}, words), h("ul", {}, found.cells.map((codes) => h("li", {}, Object.values(codes).join(" · ")))));
      } catch (error) { place.append(problem(error)); }
    });
    place.append(button);
    return place;
  }

  range(cell, body) {
    const place = h("div", { role: "status" }, h("h3", {}, t("look.range")), h("p", { class: "quiet" }, t("look.range_wait")));
    api("POST", `${here}/table/range`, body).then(({ ranges: [found] }) => place.lastChild.replaceWith(found
      ? h("div", {}, h("p", {}, against(found)), rangePicture(found, cell.value), h("p", { class: "quiet" }, t("look.range_free")))
      : h("p", { class: "quiet" }, t("look.range_none"))), (error) => place.lastChild.replaceWith(problem(error)));
    return place;
  }

  ranges(source, cell) {
    if (source.name === null || !(cell.kind === "primary" || cell.sensitive)) return [];
    const known = cell.ranges.filter((range) => range.lowest !== null || range.highest !== null);
    if (!known.length) return [h("p", { class: "quiet" }, t("look.range_none"))];
    const [first, ...more] = known;
    return [h("h3", {}, t("look.range")), h("p", {}, against(first)), rangePicture(first, cell.value),
      more.length ? h("p", { class: "quiet" }, t("look.attackers_more", { n: more.length })) : ""];
  }

  deciding(cell) {
    const said = h("div");
    const kinds = ["none", "protect", "publish", "withhold"];
    let last = cell.decision;
    const control = choice(kinds.map((kind) => [kind, t(`look.decide_${kind}`)]), last);
    control.addEventListener("change", async () => {
      try {
        await api("POST", `${here}/decisions`, { codes: cell.codes, decision: control.value });
        last = control.value;
        said.replaceChildren(note("good", h("p", {}, t("look.decided")), h("a", { class: "button", href: page("protect") }, t("look.again"))));
        say(t("app.saved"));
      } catch (error) { control.value = last; said.replaceChildren(error.mistakes ? note("bad", h("p", {}, error.mistakes.map((m) => m.text).join(" "))) : problem(error)); }
    });
    return h("div", {}, field(t("look.decide"), control, { help: t("look.decide_help") }), said);
  }
}
