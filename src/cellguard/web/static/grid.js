// A table of any size: only what is on the screen is in the page. Two axes with trees that fold, sticky heads,
// the ARIA grid pattern with counts and indices, and the keyboard.
import { h, t, written } from "./dom.js";

const ROW = 30, GROUP = 26, HEAD = 230, COLUMN = 132, INTERVAL = 190, AROUND = 6, AHEAD = 40, MOST = 400000;
const LETTER = 9, WIDEST = 360; // pixels of a digit, and of the widest column
let grids = 0;

class Axis {
  constructor(facts) {
    Object.assign(this, facts);
    this.folded = new Set();
    this.children = this.id.map(() => false);
    for (const up of this.parent) if (up >= 0) this.children[up] = true;
    this.refresh();
  }

  /** Positions of the codes that no folded one hides. */
  refresh() {
    const hidden = new Set();
    this.seen = [];
    this.id.forEach((_, k) => {
      const up = this.parent[k];
      if (up >= 0 && (hidden.has(up) || this.folded.has(up))) hidden.add(k);
      else this.seen.push(k);
    });
  }

  open(k) {
    for (let up = this.parent[k]; up >= 0; up = this.parent[up]) this.folded.delete(up);
    this.refresh();
  }

  find(words) {
    const wanted = words.toLowerCase();
    return this.id.map((_, k) => k).filter((k) => this.code[k].toLowerCase().includes(wanted) || this.label[k].toLowerCase().includes(wanted));
  }

  name(k) { return this.label[k] ? `${this.code[k]} ${this.label[k]}` : this.code[k]; }
}

export class Grid {
  /** ask(down, across) returns {texts, kinds}; opened(codes, cell) is called for a chosen cell. */
  constructor({ label, kinds, wide, ask, opened }) {
    grids += 1;
    this.column = wide ? INTERVAL : COLUMN;
    this.number = grids;
    Object.assign(this, { kinds, ask, opened, cache: new Map(), asked: new Set(), at: [0, 0], foundRow: -1, foundColumn: -1 });
    this.space = h("div", { role: "presentation" });
    this.table = h("table", { role: "presentation" });
    this.box = h("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": label, "aria-readonly": "true" }, this.space, this.table);
    this.box.addEventListener("scroll", () => this.soon());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => { if (this.rows) this.size(); this.soon(); }).observe(this.box);
  }

  /** Show two axes; `columns` may be null. */
  lay(rows, columns) {
    this.rows = new Axis(rows);
    this.columns = columns ? new Axis(columns) : null;
    this.names = this.longest();
    if (this.columns && this.columns.id.length > 40) this.foldTo(this.columns, 1);
    this.cache.clear();
    this.asked.clear();  // what is on its way belongs to the table before
    this.at = [0, 0];
    this.size();
    this.box.scrollTo(0, 0);
    this.draw();
  }

  /** Pixels that the codes of the rows need, and the corner above them. */
  longest() {
    const corner = this.rows.title.length + (this.columns ? this.columns.title.length + 3 : 0);
    const names = this.rows.id.map((_, k) => LETTER * this.rows.name(k).length + 15 * this.rows.depth[k] + 32);
    return names.reduce((most, one) => Math.max(most, one), LETTER * corner + 18);
  }

  foldTo(axis, depth) {
    axis.children.forEach((has, k) => { if (has && axis.depth[k] >= depth) axis.folded.add(k); });
    axis.refresh();
  }

  foldAll(fold) {
    for (const axis of [this.rows, this.columns]) {
      if (!axis) continue;
      axis.folded.clear();
      if (fold) this.foldTo(axis, 1);
      axis.refresh();
    }
    this.at = [0, 0];
    this.size();
    this.draw();
  }

  get across() { return this.columns ? this.columns.seen : [0]; }
  get heads() { return this.columns && this.columns.depth.some((d) => d > 1) ? 2 : 1; }
  get top() { return this.heads === 2 ? ROW + GROUP : ROW; }
  get left() { return Math.min(HEAD, this.names, this.box.clientWidth * 0.45); }

  size() {
    const wide = this.left + this.across.length * this.column;
    // what hides behind the codes of the rows hides as whole columns: half a number looks like another one
    const beyond = Math.max(0, wide - this.box.clientWidth);
    this.space.style.width = `${wide - beyond + this.whole(beyond)}px`;
    this.space.style.height = `${this.top + this.rows.seen.length * ROW}px`;
    this.box.setAttribute("aria-rowcount", String(this.rows.seen.length + this.heads));
    this.box.setAttribute("aria-colcount", String(this.across.length + 1));
  }

  whole(width) { return Math.ceil(width / this.column - 0.01) * this.column; }

  refreshCells() { this.cache.clear(); this.asked.clear(); this.draw(); }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); this.scrolled?.(this.box.scrollTop, this.box.scrollLeft); });
  }

  window() {
    const rows = this.rows.seen.length, columns = this.across.length;
    const r0 = Math.max(0, Math.floor(this.box.scrollTop / ROW) - AROUND);
    const r1 = Math.min(rows, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + AROUND);
    const c0 = Math.max(0, Math.floor(this.box.scrollLeft / this.column) - 2);
    const c1 = Math.min(columns, Math.ceil((this.box.scrollLeft + this.box.clientWidth) / this.column) + 2);
    return [r0, r1, c0, c1];
  }

  draw() {
    if (!this.rows) return;
    const begin = performance.now();
    const [r0, r1, c0, c1] = this.window();
    this.table.style.top = `${r0 * ROW}px`;  // no transform: sticky heads would not see it
    this.table.style.left = `${c0 * this.column}px`;
    this.table.style.width = `${this.left + (c1 - c0) * this.column}px`;
    const body = h("tbody", { role: "rowgroup" });
    let missing = false;
    for (let r = r0; r < r1; r += 1) {
      const k = this.rows.seen[r];
      const line = h("tr", { role: "row", "aria-rowindex": String(r + 1 + this.heads), class: k === this.foundRow ? "found" : null }, this.rowHead(r, k));
      for (let c = c0; c < c1; c += 1) {
        const cell = this.cache.get(this.keyOf(k, this.across[c]));
        missing ||= cell === undefined;
        line.append(this.cellOf(r, c, cell));
      }
      body.append(line);
    }
    this.table.replaceChildren(this.columnsOf(c0, c1), this.header(c0, c1), body);
    this.box.setAttribute("aria-activedescendant", this.idOf(...this.at));
    if (missing) this.fetch(r0, r1, c0, c1);
    this.box.dataset.ms = (performance.now() - begin).toFixed(1);
  }

  columnsOf(c0, c1) {
    const group = h("colgroup");
    for (let c = c0 - 1; c < c1; c += 1) {
      const column = h("col");
      column.style.width = `${c < c0 ? this.left : this.column}px`;
      group.append(column);
    }
    return group;
  }

  header(c0, c1) {
    const corner = (index, words) => h("th", { role: "columnheader", class: "corner", "aria-colindex": "1", scope: "col" }, words);
    const codes = h("tr", { role: "row", "aria-rowindex": String(this.heads) }, corner(1, this.columns ? `${this.rows.title} \\ ${this.columns.title}` : this.rows.title));
    const groups = h("tr", { role: "row", "aria-rowindex": "1" }, corner(0, ""));
    let last = null, cell = null;
    for (let c = c0; c < c1; c += 1) {
      const k = this.across[c];
      const head = h("th", { role: "columnheader", "aria-colindex": String(c + 2), scope: "col", class: k === this.foundColumn ? "found" : this.columns && this.columns.depth[k] === 0 ? "top-level" : null });
      if (this.columns) this.foldable(head, this.columns, k, c, "column");
      else head.append(t("sign.release"));
      codes.append(head);
      if (this.heads === 2) {
        const up = this.columns.parent[k];
        if (cell && up === last) cell.colSpan += 1;
        else { cell = h("th", { role: "columnheader", class: "group", "aria-colindex": String(c + 2), scope: "colgroup" }, up >= 0 ? this.columns.name(up) : " "); groups.append(cell); last = up; }
      }
    }
    const out = h("thead", { role: "rowgroup" });
    if (this.heads === 2) {
      out.append(groups);
      for (const head of codes.children) head.style.top = `${GROUP}px`;
    }
    out.append(codes);
    return out;
  }

  rowHead(r, k) {
    const head = h("th", { role: "rowheader", "aria-colindex": "1", scope: "row", class: this.rows.depth[k] === 0 ? "top-level" : null });
    head.style.paddingLeft = `${0.4 + 0.9 * this.rows.depth[k]}rem`;
    this.foldable(head, this.rows, k, r, "row");
    return head;
  }

  foldable(head, axis, k, place, kind) {
    head.title = axis.name(k);
    if (axis.children[k]) {
      const folded = axis.folded.has(k);
      head.setAttribute("aria-expanded", String(!folded));
      head.append(h("span", { class: "fold", "data-fold": kind, "data-place": String(k), "aria-hidden": "true" }, folded ? "▸" : "▾"));
    }
    else if (kind === "row" && axis.parent[k] >= 0) head.append(h("span", { class: "fold" , "aria-hidden": "true" }, " "));
    head.append(axis.name(k));
  }

  idOf(r, c) { return `grid${this.number}-${r}-${c}`; }
  keyOf(k, c) { return k * 1000003 + c; }

  cellOf(r, c, cell) {
    const here = r === this.at[0] && c === this.at[1];
    const kind = cell ? this.kinds[cell[1]] : "";
    const made = h("td", { role: "gridcell", id: this.idOf(r, c), "aria-colindex": String(c + 2), class: kind || null, "data-r": String(r), "data-c": String(c), "aria-selected": here ? "true" : null }, cell ? cell[0] || " " : "…");
    if (["sensitive", "primary", "secondary"].includes(kind)) made.setAttribute("aria-label", `${cell[0]}, ${t(`kind.${kind}`)}`);
    return made;
  }

  async fetch(r0, r1, c0, c1) {
    const rows = [Math.max(0, r0 - AHEAD), Math.min(this.rows.seen.length, r1 + AHEAD)];
    const columns = [Math.max(0, c0 - 8), Math.min(this.across.length, c1 + 8)];
    const key = [...rows, ...columns].join(":");
    if (this.asked.has(key)) return;
    this.asked.add(key);
    const down = this.rows.seen.slice(...rows), across = this.across.slice(...columns);
    const [rowAxis, columnAxis] = [this.rows, this.columns];
    try {
      const found = await this.ask(down.map((k) => rowAxis.id[k]), columnAxis ? across.map((k) => columnAxis.id[k]) : []);
      if (rowAxis !== this.rows || columnAxis !== this.columns) return;
      if (this.cache.size > MOST) this.cache.clear();
      down.forEach((k, i) => across.forEach((c, j) => this.cache.set(this.keyOf(k, c), [written(found.texts[i][j]), found.kinds[i][j]])));
      this.asked.delete(key);
      this.widen(Math.max(...found.texts.flat().map((words) => words.length)));
      this.draw();
    } catch (error) {
      this.asked.delete(key);
      this.failed?.(error);
    }
  }

  /** Make room for the longest number that was met: a number that is cut off is a wrong one. */
  widen(letters) {
    const needed = Math.min(WIDEST, letters * LETTER + 18);
    if (!(needed > this.column)) return;
    this.column = needed;
    this.size();
  }

  // ------------------------------------------------------------ moving about

  fold(axis, k) {
    if (!axis?.children[k]) return;
    if (!axis.folded.delete(k)) axis.folded.add(k);
    axis.refresh();
    this.asked.clear();
    this.at = [Math.min(this.at[0], this.rows.seen.length - 1), Math.min(this.at[1], this.across.length - 1)];
    this.size();
    this.draw();
  }

  go(r, c) {
    this.at = [Math.max(0, Math.min(this.rows.seen.length - 1, r)), Math.max(0, Math.min(this.across.length - 1, c))];
    const y = this.at[0] * ROW, x = this.at[1] * this.column;
    if (y < this.box.scrollTop) this.box.scrollTop = y;
    if (y + ROW + this.top > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = y + ROW + this.top - this.box.clientHeight;
    if (x < this.box.scrollLeft) this.box.scrollLeft = x;
    if (x + this.column + this.left > this.box.scrollLeft + this.box.clientWidth) this.box.scrollLeft = this.whole(x + this.column + this.left - this.box.clientWidth);
    this.draw();
    this.moved?.(...this.at);
  }

  key(event) {
    const page = Math.max(1, Math.floor((this.box.clientHeight - this.top) / ROW) - 1);
    const [r, c] = this.at;
    const moves = { ArrowDown: [r + 1, c], ArrowUp: [r - 1, c], ArrowRight: [r, c + 1], ArrowLeft: [r, c - 1], PageDown: [r + page, c], PageUp: [r - page, c],
      Home: [event.ctrlKey ? 0 : r, 0], End: [event.ctrlKey ? Infinity : r, Infinity] };
    if (event.key in moves) this.go(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.openCell(r, c);
    else if (event.key === "+" || event.key === "-") { if (this.rows.folded.has(this.rows.seen[r]) === (event.key === "+")) this.fold(this.rows, this.rows.seen[r]); }
    else return;
    event.preventDefault();
  }

  click(event) {
    const fold = event.target.closest("[data-fold]");
    if (fold) { this.fold(fold.dataset.fold === "row" ? this.rows : this.columns, Number(fold.dataset.place)); return; }
    const cell = event.target.closest("td");
    if (!cell) return;
    const [r, c] = [Number(cell.dataset.r), Number(cell.dataset.c)];
    this.go(r, c);
    this.openCell(r, c);
  }

  openCell(r, c) {
    const codes = { [this.rows.index]: this.rows.id[this.rows.seen[r]] };
    if (this.columns) codes[this.columns.index] = this.columns.id[this.across[c]];
    this.opened(codes);
  }

  /** Go to the next code that holds some words; returns [which, how many]. */
  search(words, step) {
    const found = [...this.rows.find(words).map((k) => ["row", k]), ...(this.columns ? this.columns.find(words).map((k) => ["column", k]) : [])];
    if (!found.length) { this.foundRow = this.foundColumn = -1; this.draw(); return [0, 0]; }
    const place = ((step % found.length) + found.length) % found.length;
    const [kind, k] = found[place];
    const axis = kind === "row" ? this.rows : this.columns;
    axis.open(k);
    this.size();
    this.foundRow = kind === "row" ? k : -1;
    this.foundColumn = kind === "column" ? k : -1;
    const at = axis.seen.indexOf(k);
    this.go(kind === "row" ? at : this.at[0], kind === "column" ? at : this.at[1]);
    return [place + 1, found.length];
  }
}
