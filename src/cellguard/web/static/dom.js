// Small helpers that every page uses: elements, texts, requests, fields with their messages.

let texts = {}, sentences = [];
export async function loadTexts(language) {
  texts = await (await fetch(`/texts/${language}.json`)).json();
  sentences = Object.keys(texts).filter((key) => key.startsWith("english.")).map((key) => [pattern(texts[key]), texts[key.slice(8)]]);
}
const pattern = (sentence) => new RegExp(`^${sentence.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\d\}/g, "((?:(?![;:] ).)+?)")}$`); // names and numbers do not go beyond a part

const ownSigns = (words) => (/^\d{1,3}(,\d{3})+$/.test(words) ? Number(words.replaceAll(",", "")).toLocaleString(document.documentElement.lang) : words);

/** What the program says, in the language of the page where its translation has the sentence; the rest stays English. */
export function said(text) {
  for (const [sentence, own] of sentences) {
    const found = sentence.exec(text);
    if (found) return own.replace(/\{(\d)\}/g, (_, place) => ownSigns(found[Number(place) + 1]));
  }
  const between = sentences.length && ["; ", ": "].find((sign) => text.includes(sign));
  return between ? text.split(between).map(said).join(between) : text;
}

/** The text of a key, with {name} filled in. */
export function t(key, values = {}) {
  const text = texts[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (all, name) => (name in values ? String(values[name]) : all));
}
/** The text of a key, or another one where the translation has none: what is added to the program stands on the page at once. */
export const known = (key, other) => texts[key] ?? other;

/** An element: h("p", {class: "help"}, "text", other). Text is never read as HTML. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string" && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Show a table as a list of labelled entries on narrow screens. */
export function stacked(table) {
  const heads = [...table.querySelectorAll("thead > tr > *")].map((head) => head.textContent);
  for (const row of table.querySelectorAll("tbody > tr")) [...row.children].forEach((cell, place) => { cell.dataset.label = heads[place]; });
  table.classList.add("stack");
  return table;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

export class Refused extends Error {
  constructor(status, body) {
    super(said(body.message ?? ""));
    this.status = status;
    this.hint = body.hint ? said(body.hint) : null;
    this.mistakes = body.mistakes?.map((m) => ({ ...m, text: said(m.text), hint: m.hint && said(m.hint) })) ?? null;
  }
}

let version = null, last = Promise.resolve();
const CHANGES = /\/(job\/\w+|data|decisions|undo|redo|work\/\w+)$/;

/** Ask the server; throws Refused with its message, hint and mistakes. Changes of the job go one after the other, each with the version that it changes. */
export function api(method, path, body) {
  if (method === "GET" || !CHANGES.test(path)) return ask(method, path, body);
  const answer = last.then(() => ask(method, path, body));
  last = answer.catch(() => {});
  return answer;
}

/** The version of the job that this page shows. */
export const shownVersion = () => version;

async function ask(method, path, body) {
  const options = { method, headers: version && method !== "GET" ? { "x-job-version": version } : {} };
  if (body instanceof Blob) options.body = body;
  else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  const answer = await fetch(`/api${path}`, options);
  const text = await answer.text();
  let content;
  try { content = JSON.parse(text); } catch { content = { message: text.trim() }; }
  if (answer.status === 409) document.dispatchEvent(new CustomEvent("stale"));
  if (!answer.ok) throw new Refused(answer.status, content);
  if (content?.version && !path.endsWith("/version")) version = content.version;
  if (content?.undo !== undefined) document.dispatchEvent(new CustomEvent("versions", { detail: content }));
  return content;
}

let timer = null;
/** Say something in passing, at the edge of the page and to screen readers. */
export function say(text) {
  const place = document.getElementById("status");
  place.textContent = text;
  place.classList.add("on");
  clearTimeout(timer);
  timer = setTimeout(() => place.classList.remove("on"), 2500);
}

export function note(kind, ...content) {
  return h("div", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null }, ...content);
}

/** Show an error: its message and the hint. */
export function problem(error) {
  const lines = [h("p", {}, h("strong", {}, t("app.error")), ": ", error.message || String(error))];
  if (error.hint) lines.push(h("p", {}, `${t("app.hint")}: ${error.hint}`));
  return note("bad", ...lines);
}

/** A box that scrolls on its own and can be reached by keyboard. */
export const scrolling = (label, attributes, ...children) =>
  h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label, ...attributes }, ...children);

let made = 0;
const fresh = (name) => `${name}-${(made += 1)}`;

/** A field: label, control, a sentence of help, and a place for its mistake. `path` is the place of its value in the job. */
export function field(label, control, { help = "", path = null, check = false } = {}) {
  control.id ||= fresh("field");
  const described = [];
  const helpLine = help ? h("p", { class: "help", id: fresh("help") }, help) : null;
  if (helpLine) described.push(helpLine.id);
  const mistake = h("p", { class: "mistake", id: fresh("mistake"), hidden: true });
  described.push(mistake.id);
  control.setAttribute("aria-describedby", described.join(" "));
  const name = check ? h("label", { for: control.id }, control, h("span", {}, label)) : h("label", { for: control.id }, label);
  const box = h("div", { class: check ? "field check" : "field" }, name, check ? null : control, helpLine, mistake);
  if (path) box.dataset.path = path.join("/");
  box.control = control;
  return box;
}

/** Say beside a field what is wrong with it, and go there. */
export function fieldWrong(box, words) {
  const line = box.querySelector(":scope > .mistake");
  line.textContent = words;
  line.hidden = !words;
  box.classList.toggle("wrong", Boolean(words));
  if (words) (box.control ?? box.querySelector("input, select, button"))?.focus();
}

export function choice(options, value, attributes = {}) {
  const control = h("select", attributes, options.map(([key, text]) => h("option", { value: key }, text)));
  control.value = value ?? "";
  return control;
}
export const text = (value, attributes = {}) => h("input", { type: "text", ...attributes, value: value ?? "" });
export const number = (value, attributes = {}) =>
  h("input", { type: "text", inputmode: "decimal", ...attributes, value: value ?? "" });
export const tick = (value, attributes = {}) => h("input", { type: "checkbox", ...attributes, checked: Boolean(value) });

/** A number as typed; other text goes to the server unchanged, which reports the mistake. */
export function numberOf(control) {
  const typed = control.value.trim().replace(",", ".");
  if (typed === "") return null;
  const value = Number(typed);
  return Number.isFinite(value) ? value : control.value.trim();
}
export const listOf = (control) => control.value.split(",").map((part) => part.trim()).filter(Boolean);

/** Put mistakes beside their fields; what has no field goes to the list on top. */
export function showMistakes(root, top, mistakes) {
  for (const box of root.querySelectorAll(".field, fieldset.rule")) {
    box.classList.remove("wrong");
    box.querySelector(":scope > .mistake")?.setAttribute("hidden", "");
    box.control?.removeAttribute("aria-invalid");
  }
  const rest = [];
  let first = null;
  for (const { path, text: words, hint } of mistakes) {
    const line = hint ? `${said(words)} ${said(hint)}` : said(words);
    let box = null;
    for (let n = path.length; n > 0 && !box; n -= 1) {
      const key = CSS.escape(path.slice(0, n).join("/"));
      box = root.querySelector(`[data-path="${key}"]`);
    }
    const place = box?.querySelector(":scope > .mistake");
    if (!place) { rest.push(`${path.join(" › ")}: ${line}`); continue; }
    place.textContent = place.hidden ? line : `${place.textContent} ${line}`;
    place.hidden = false;
    box.classList.add("wrong");
    box.control?.setAttribute("aria-invalid", "true");
    first ??= box.control;
  }
  top.replaceChildren(...(rest.length ? [note("bad", h("ul", {}, rest.map((line) => h("li", {}, line))))] : []));
  return first;
}

/** Say why a change was not saved: its mistakes beside their fields, anything else on top. */
export function notSaved(root, top, error) {
  if (error.mistakes) { showMistakes(root, top, error.mistakes); say(t("app.not_saved")); } else top.replaceChildren(problem(error));
}

let chosen = null;
/** What can be chosen: methods, rules, files, attacks. */
export const choices = () => (chosen ??= api("GET", "/choices"));
export const methodName = (name, methods = []) => known(`method.${name}.name`, methods.find((method) => method.name === name)?.title ?? name ?? "–");

export const project = document.body.dataset.project;
export const here = `/projects/${encodeURIComponent(project)}`;
export const page = (step, query = "") => `/p/${encodeURIComponent(project)}/${step}${query}`;

/** The way on to the next page, and the way back to what must be done before. */
export const onward = (step) => h("a", { class: "button main", href: page(step) }, `${t("app.next")}: ${t(`step.${step}`)}`);
export const doFirst = (key, step) => note("", h("p", {}, t(key), " ", h("a", { href: page(step) }, t(`step.${step}`))));

/** States of work that has not ended. */
export const BUSY = ["waiting", "running", "stopping"];

/** Wait until nothing changed for a moment. */
export function later(action, ms = 250) {
  let waiting = null;
  return (...given) => { clearTimeout(waiting); waiting = setTimeout(() => action(...given), ms); };
}

export function when(seconds) {
  return new Date(seconds * 1000).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
}
export const count = (value) => Number(value).toLocaleString(document.documentElement.lang);
/** Numbers that the program has written, with the signs of the page's language: 1,234.5 is 1.234,5 in German. */
export function written(words) {
  if (!/^-?[\d,]+(\.\d+)?( – -?[\d,]+(\.\d+)?)?$/.test(words)) return words;
  const signs = Object.fromEntries(new Intl.NumberFormat(document.documentElement.lang).formatToParts(12345.5).map(({ type, value }) => [type, value]));
  return words.replace(/[.,]/g, (sign) => (sign === "." ? signs.decimal : signs.group ?? ""));
}
/** How a method ended, in words. */
export const status = (value) => known(`status.${value}`, String(value ?? "–").replaceAll("_", " "));
export const figure = (value, digits = 1) =>
  value === null || value === undefined ? "–" : Number(value).toLocaleString(document.documentElement.lang, { maximumFractionDigits: digits });
