// The frame of the page: which view the address names, where one is, the theme, and the word about the driver.

import { h, render } from "./dom.js";
import { JobPage } from "./job_page.js";
import { JobsPage } from "./jobs_page.js";
import { gone } from "./driver_gone.js";
import { get } from "./server.js";

const THEMES = ["system", "light", "dark"];
const place = (id) => document.getElementById(id);
const frame = {
  /** What the driver allows; filled before the first view. */
  features: {},
  content: place("content"),
  crumbs: (...parts) => render(place("crumbs"), h("ol", {}, parts.map((part) => h("li", {}, part)))),
  title: (text) => { document.title = text ? `${text} · Rekindle` : "Rekindle"; },
  connection: (state, job) => {
    const [word, kind] = frame.features["web-history"] && state.is !== "gone"
      ? ["History", "still"]
      : { live: ["Live", "good"], polling: ["Every 3 s", "still"], gone: ["No answer", "bad"], refused: ["No answer", "bad"] }[state.is];
    render(place("connection"), h("span.dot", { class: kind }), word);
    render(place("alarm"), gone(state, job));
  },
};
let view = null;
let shown = "";

function route() {
  const [kind, jobId, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const wanted = kind === "jobs" && jobId ? jobId : "";
  if (!view || wanted !== shown) {
    view?.close();
    render(frame.content, h("p.empty", {}, "Loading …"));
    render(place("alarm"));
    shown = wanted;
    view = wanted ? new JobPage(frame, wanted) : new JobsPage(frame);
    scrollTo(0, 0);
  }
  view.show(rest);
}

function theme(step) {
  const kept = document.documentElement.dataset.theme ?? "system";
  const next = THEMES[(THEMES.indexOf(kept) + step) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("rekindle-theme", next);
  } catch {
    // a browser that keeps nothing for this page
  }
  const name = { system: "Auto", light: "Light", dark: "Dark" }[next];
  place("theme").textContent = `◐ ${name}`;
  place("theme").setAttribute("aria-label", `Colours: ${name}. Press for the next choice.`);
}

place("skip").onclick = (event) => {
  event.preventDefault(); // the part after # names the view
  frame.content.focus();
};
place("theme").onclick = () => theme(1);
theme(0);
try {
  frame.features = (await get("config")).features;
} catch (error) {
  frame.connection({ is: error.status === 401 ? "refused" : "gone", since: Date.now() });
}
addEventListener("hashchange", route);
route();
