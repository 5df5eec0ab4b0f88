// Begins every page: loads the texts, then the module of the page.
import { loadTexts, problem } from "./dom.js";
import { begin } from "./history.js";

const { language, step } = document.body.dataset;
const view = document.getElementById("view");
for (const link of document.querySelectorAll("a.language")) {
  link.href += `?back=${encodeURIComponent(location.pathname + location.search)}`;
}
document.querySelector(".steps [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
try {
  await loadTexts(language);
  begin();
  const module = await import(`./${step}.js`);
  view.replaceChildren();
  await module.show(view);
} catch (error) {
  view.replaceChildren(problem(error));
}
view.dataset.ready = "yes";
