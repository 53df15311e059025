// The slots of a job: memory, state, what they host, and their last lines.

import { h } from "./dom.js";
import * as f from "./format.js";
import { isOver } from "./job_state.js";
import { getText } from "./server.js";
import { clipped } from "./words.js";

const LATE_MS = 30_000;

export function slotsTab(job) {
  const { live } = job;
  if (!live.slots.length) return h("p.empty", {}, isOver(live) ? "The slots have ended with the job." : "No slot has started yet.");
  const most = (name) => Math.max(1, ...live.slots.map((each) => each[name] ?? 0));
  const scale = { memory: most("memory"), state: most("state-size") };
  return h("div.slots", {}, live.slots.map((each) => slot(job, each, scale)));
}

function slot(job, each, scale) {
  const silent = job.now - each["last-heartbeat"];
  const isLate = !isOver(job.live) && silent > LATE_MS;
  return h("article.slot", { "data-key": each.id },
    h("h2", {}, `Slot ${each.index}`),
    h("ul.facts", {}, h("li", {}, `${each.host}, process ${each.pid}`),
      h("li", { class: isLate ? "bad" : null }, isOver(job.live) ? "has ended" : `heartbeat ${f.ago(silent)}`)),
    h("dl.bars", {},
      bar("Memory", f.bytes(each.memory), each.memory / scale.memory),
      bar("State", f.bytes(each["state-size"]), (each["state-size"] ?? 0) / scale.state),
      h("dt", {}, "Processor time"), h("dd", {}, f.duration(each["cpu-seconds"] * 1000))),
    h("ul.chips", { "aria-label": "Subtasks" }, each.subtasks.map(({ vertex, subtask, status }) =>
      h("li", { class: status === "FAILED" ? "bad" : null }, clipped(job.vertexName(vertex)), h("span.nr", {}, String(subtask + 1))))),
    h("details", { ontoggle: (event) => event.currentTarget.open && fill(event.currentTarget, each.id) },
      h("summary", {}, "Last lines"), lines(each.id)));
}

const bar = (name, value, part) => [
  h("dt", {}, name),
  h("dd", {}, value, h("span.meter", { "aria-hidden": "true" }, h("span", { style: { width: `${Math.min(100, 100 * part)}%` } }))),
];

// What each slot has printed and logged, as far as it was asked for.
const known = new Map();
const lines = (id) => h("pre.log", { tabindex: "0" }, known.get(id) ?? "Asking the driver …");

async function fill(details, id) {
  const path = `taskmanagers/${encodeURIComponent(id)}`;
  try {
    const [log, out] = await Promise.all([getText(`${path}/log`), getText(`${path}/stdout`)]);
    known.set(id, [log, out].filter(Boolean).join("\n") || "The slot has written nothing.");
  } catch (error) {
    known.set(id, error.message);
  }
  details.querySelector("pre").textContent = known.get(id);
}
