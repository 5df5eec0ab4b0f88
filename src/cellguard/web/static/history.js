// Undo and redo on every page, and the note that another window has changed the project.
import { api, h, here, note, page, problem, shownVersion, t } from "./dom.js";

const place = document.getElementById("history");
const step = document.body.dataset.step;

function button(kind, found) {
  const n = found[kind];
  const part = found[`${kind}_part`];
  const made = h("button", { type: "button", class: "small", id: kind, disabled: !n }, part ? `${t(`app.${kind}`)}: ${t(`step.${part}`)}` : t(`app.${kind}`));
  made.addEventListener("click", async () => {
    try {
      const done = await api("POST", `${here}/${kind}`);
      if (done.part === step) location.reload(); else location.href = page(done.part);
    } catch (error) { if (error.status !== 409) place.append(problem(error)); }
  });
  return made;
}

let warned = false;
function stale() {
  if (warned) return;
  warned = true;
  place.after(note("warn", h("p", {}, h("strong", {}, t("app.stale"))), h("p", {}, t("app.stale_help")), h("button", { type: "button", class: "main", id: "reload", onclick: () => location.reload() }, t("app.reload"))));
}

/** Show the buttons once a page knows its versions, and look for changes when the user comes back to this window. */
export function begin() {
  if (!place) return;
  let shown = "";
  document.addEventListener("versions", ({ detail }) => {
    const key = JSON.stringify([detail.undo, detail.redo, detail.undo_part, detail.redo_part]);
    if (key !== shown) place.replaceChildren(button("undo", detail), button("redo", detail)); // a button that is being pressed stays
    shown = key;
  });
  document.addEventListener("stale", stale);
  const look = async () => {
    if (document.hidden || !shownVersion()) return;
    try { if ((await api("GET", `${here}/version`)).version !== shownVersion()) stale(); } catch { /* the server has ended */ }
  };
  window.addEventListener("focus", look);
  document.addEventListener("visibilitychange", look);
}
