// Small parts that several views share: states, figures with a name, numbers in tables.

import { h } from "./dom.js";
import { share, word } from "./format.js";

const KINDS = {
  RUNNING: "good", FINISHED: "done", COMPLETED: "good", FAILED: "bad", FAILING: "bad", RESTARTING: "warn",
  CANCELED: "still", CANCELLING: "warn", CANCELING: "warn", SUSPENDED: "warn", IN_PROGRESS: "busy",
  CREATED: "still", INITIALIZING: "busy", DEPLOYING: "busy", SCHEDULED: "busy", RECONCILING: "busy",
};
const WORDS = { SUSPENDED: "Driver died" };

/** The state of a job, task or checkpoint; `isOld`: nobody can say whether it is still so. */
export function state(name, isOld = false) {
  const text = WORDS[name] ?? word(name);
  const kind = isOld ? "still" : KINDS[name] ?? "still";
  return h("span.state", { class: kind, "data-state": name }, isOld ? `${text} when last seen` : text);
}

/** A figure with its name, and a word below it. */
export const figure = (name, value, note, kind) =>
  h("div.figure", { class: kind }, h("dt", {}, name), h("dd", {}, value), note ? h("dd.note", {}, note) : null);

export const figures = (...each) => h("dl.figures", {}, each);

export const section = (title, ...rest) => h("section.part", {}, h("h2", {}, title), rest);

/** A table: columns are [name, isNumber], rows arrays of cells with a key. */
export function table(label, columns, rows, empty = "Nothing yet.") {
  if (!rows.length) return h("p.empty", {}, empty);
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": label },
    h("table", {},
      h("thead", {}, h("tr", {}, columns.map(([name, isNumber]) => h("th", { scope: "col", class: isNumber ? "number" : null }, name)))),
      h("tbody", {}, rows.map(({ key, kind, cells }) =>
        h("tr", { "data-key": `row-${key}`, class: kind },
          cells.map((cell, index) => h("td", { class: columns[index][1] ? "number" : null, "data-label": columns[index][0] }, cell)))))));
}

/** A name that may be long. */
export const clipped = (text) => h("span.clip", { title: text }, text);

/** Text to copy, with a button. */
export const copyable = (text) =>
  h("span.copyable", {}, h("code", {}, text), h("button.quiet.small", {
    type: "button",
    onclick: (event) => {
      const button = event.currentTarget;
      navigator.clipboard?.writeText(text).then(() => {
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      }, () => {});
    },
  }, "Copy"));

/** How a task's time divides: busy, back-pressured, idle. */
export const load = (busy, waits) =>
  h("span.load", { role: "img", "aria-label": `busy ${share(busy)}, back-pressured ${share(waits)}` },
    h("span.busy", { style: { width: `${100 * Math.min(1, busy)}%` } }),
    h("span.waits", { style: { width: `${100 * Math.min(1 - Math.min(1, busy), waits)}%` } }));

/** Spark's address comes from the job's own session; still, only a web address becomes a link. */
export const safeLink = (url) => (/^https?:\/\//.test(url) ? url : null);
