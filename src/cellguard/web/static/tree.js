// A hierarchy drawn by hand: groups are made, codes are ticked and put below them; with the keyboard or by dragging.
import { choice, field, fieldWrong, h, t, text, tick } from "./dom.js";

export class Tree {
  /** codes: the leaves; drawn: the nested tree of an earlier drawing, if any. */
  constructor(codes, drawn) {
    const sorted = [...codes].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    this.parent = new Map(sorted.map((code) => [code, ""]));
    this.groups = new Set();
    if (drawn) this.place(drawn, "");
    this.ticked = new Set();
    this.name = text("");
    this.nameField = field(t("tree.group"), this.name, { help: t("tree.group_help") });
    this.list = h("div");
    this.tools = h("div", { class: "row end" });
    this.box = h("div", {}, h("p", { class: "help" }, t("tree.lead")),
      h("div", { class: "row end" }, this.nameField, h("button", { type: "button", onclick: () => this.add() }, t("tree.add"))), this.tools, this.list);
    this.draw();
  }

  place(node, above) {
    const entries = Array.isArray(node) ? node.map((item) => (typeof item === "string" ? [item, []] : Object.entries(item)[0])) : Object.entries(node);
    for (const [code, below] of entries) {
      const leaf = below === null || below === "" || (Array.isArray(below) && !below.length) || (typeof below === "object" && !Object.keys(below).length);
      this.parent.set(code, above);
      if (!leaf) { this.groups.add(code); this.place(typeof below === "string" ? [below] : below, code); }
    }
  }

  add() {
    const name = this.name.value.trim();
    const words = !name ? t("tree.needed") : this.parent.has(name) ? t("tree.exists") : "";
    fieldWrong(this.nameField, words);
    if (words) return;
    this.parent.set(name, "");
    this.groups.add(name);
    this.name.value = "";
    this.draw();
    this.target.value = name;
  }

  under(code, group) {
    for (let up = group; up; up = this.parent.get(up)) if (up === code) return true;
    return false;
  }

  move(codes, group) {
    for (const code of codes) if (!this.under(code, group)) this.parent.set(code, group);
    this.ticked.clear();
    this.draw();
  }

  remove(group) {
    const up = this.parent.get(group);
    for (const [code, above] of this.parent) if (above === group) this.parent.set(code, up);
    this.parent.delete(group);
    this.groups.delete(group);
    this.draw();
  }

  draw() {
    const before = this.target?.value ?? "";
    this.target = choice([["", t("tree.total")], ...[...this.groups].map((group) => [group, group])], this.groups.has(before) ? before : "");
    this.tools.replaceChildren(field(t("tree.below"), this.target),
      h("button", { type: "button", onclick: () => this.move([...this.ticked], this.target.value) }, t("tree.move")));
    this.list.replaceChildren(this.branch("", true));
  }

  branch(above, first = false) {
    const codes = [...this.parent].filter(([, up]) => up === above).map(([code]) => code);
    return h("ul", { class: first ? "tree first" : "tree" }, codes.map((code) => this.node(code)));
  }

  node(code) {
    const group = this.groups.has(code);
    const control = tick(this.ticked.has(code));
    control.addEventListener("change", () => (control.checked ? this.ticked.add(code) : this.ticked.delete(code)));
    const row = h("div", { class: group ? "node group" : "node", draggable: "true" }, h("label", {}, control, ` ${code}`));
    if (group) row.append(h("button", { type: "button", class: "small", "aria-label": `${t("tree.remove")}: ${code}`, onclick: () => this.remove(code) }, t("app.remove")));
    row.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", code));
    if (group) {
      row.addEventListener("dragover", (event) => { event.preventDefault(); row.classList.add("over"); });
      row.addEventListener("dragleave", () => row.classList.remove("over"));
      row.addEventListener("drop", (event) => { event.preventDefault(); this.move([event.dataTransfer.getData("text/plain")], code); });
    }
    return h("li", {}, row, group ? this.branch(code) : "");
  }
}

/** The tree as the job holds it: groups are tables or lists of their codes. */
export function nested(tree, above = "") {
  const codes = [...tree.parent].filter(([, up]) => up === above).map(([code]) => code);
  if (above && !codes.some((code) => tree.groups.has(code))) return codes;
  return Object.fromEntries(codes.map((code) => [code, tree.groups.has(code) ? nested(tree, code) : []]));
}
