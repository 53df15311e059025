// The graph of a job: tasks with their load, exchanges with their rates, and one task by subtask.

import { contentWidth, h, s } from "./dom.js";
import * as f from "./format.js";
import { layered, placed } from "./graph_layout.js";
import { isOver } from "./job_state.js";
import { bottleneckOf } from "./notices.js";
import { taskPart } from "./task_part.js";
import { load } from "./words.js";

const NARROW = 720;
const MARGIN = 6;

export function graphTab(job, base, [chosen]) {
  const { live } = job;
  const task = live.vertices.find((each) => each.id === chosen);
  return [
    live.vertices.length ? graph(live, base, task) : h("p.empty", {}, "The plan is not known yet."),
    legend(live),
    task ? taskPart(job, task, `${base}/graph`) : h("p.hint", {}, "Choose a task to see its subtasks."),
  ];
}

function graph(live, base, chosen) {
  const width = contentWidth();
  const isDown = width < NARROW;
  const ids = live.vertices.map((each) => each.id);
  const flow = layered(ids, live.edges);
  const deep = flow.layers.length;
  const broad = Math.max(...flow.layers.map((layer) => layer.filter((id) => !id.startsWith("bend ")).length));
  const narrow = broad > 1 ? Math.floor((width - 2 * MARGIN - 12) / 2) : Math.min(width - 2 * MARGIN, 340);
  const box = { width: isDown ? narrow : 268, height: heightOf(isOver(live), isDown && broad > 1) };
  const room = (width - 2 * MARGIN - deep * box.width) / Math.max(1, deep - 1);
  const along = isDown ? 62 : Math.min(190, Math.max(104, room));
  const plan = placed(flow, { width, box, gap: { along, across: isDown ? 12 : 26 }, isDown });
  const size = { width: plan.width + 2 * MARGIN, height: plan.height + 2 * MARGIN };
  const isTight = isDown && broad > 1;
  const slow = bottleneckOf(live);
  return h("div.graph", { tabindex: "0", role: "region", "aria-label": "Graph of the job" },
    h("div.canvas", { class: isTight ? "tight" : null, style: { width: `${size.width}px`, height: `${size.height}px` } },
      s("svg", { ...size, "aria-hidden": "true" },
        arrowTip(),
        s("g", { transform: `translate(${MARGIN} ${MARGIN})` },
          plan.lines.map((line, index) => edge(line, live.edges[index], live)))),
      live.vertices.map((each) =>
        node(each, plan.places.get(each.id), live, `${base}/graph`, { isChosen: each === chosen, isSlow: each === slow, isTight }))));
}

/** Tasks of a job that is over have fewer figures, narrow ones more rows. */
const heightOf = (over, isTight) => (over ? (isTight ? 128 : 126) : isTight ? 178 : 146);

function arrowTip() {
  const shape = { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
  return s("defs", {}, s("marker", shape, s("path", { d: "M0 0.5L7.5 4L0 7.5z" })));
}

function edge({ path, label: [x, y] }, { "records-per-second": perSecond, records, "ship-strategy": strategy }, live) {
  const figure = isOver(live) ? f.count(records) : f.rate(perSecond);
  const wide = 8 * Math.max(figure.length, strategy.length);
  return s("g.edge", { class: perSecond > 0 && !isOver(live) ? "flows" : null },
    s("path", { d: path, "marker-end": "url(#tip)" }),
    s("rect.plate", { x: x - wide / 2, y: y - 17, width: wide, height: 32, rx: 6 }),
    s("text", { x, y: y - 5 }, figure),
    s("text.how", { x, y: y + 11 }, strategy.toLowerCase()));
}

function node(task, place, live, base, { isChosen, isSlow, isTight }) {
  const over = isOver(live);
  const href = isChosen ? base : `${base}/${task.id}`;
  const label = `${task.name}, ${f.word(task.status)}, ${f.many(task.parallelism, "subtask")}`
    + (over ? "" : `, busy ${f.share(task.busy)}, back-pressured ${f.share(task["back-pressured"])}`);
  return h("a.node", {
    href, "data-key": task.id, "aria-label": label, "aria-current": isChosen ? "true" : null,
    class: task.status === "FAILED" ? "failed" : isSlow ? "slow" : null,
    style: {
      left: `${place.x + MARGIN}px`, top: `${place.y + MARGIN}px`, width: `${place.width}px`, height: `${place.height}px`,
    },
  },
  h("span.title", {}, h("span.label", { title: task.name }, task.name), h("span.times", {}, `× ${task.parallelism}`)),
  over ? null : load(task.busy, task["back-pressured"]),
  h("span.rows", {},
    row("in", over ? f.count(task["records-in"]) : f.rate(task["records-in-per-second"])),
    row("out", over ? f.count(task["records-out"]) : f.rate(task["records-out-per-second"])),
    over ? row("state", f.bytes(task["state-size"])) : row("busy", f.share(task.busy), task.busy >= 0.8 ? "hot" : null),
    over
      ? row("status", f.word(task.status))
      : row("back-pressure", f.share(task["back-pressured"]), task["back-pressured"] >= 0.1 ? "waits" : null),
    over ? null : row(isTight ? "lag" : "watermark lag", f.lag(task["watermark-lag"])),
    over ? null : row("state", f.bytes(task["state-size"]))));
}

const row = (name, value, kind) => h("span.row", {}, h("span", {}, name), h("b", { class: kind }, value));

function legend(live) {
  if (isOver(live)) return h("p.legend", {}, live.restarts ? "Records of the last attempt." : "Records in all.");
  return h("p.legend", {},
    h("span", {}, h("i.busy"), "busy"),
    h("span", {}, h("i.waits"), "back-pressured: waits for the tasks after it"),
    h("span", {}, h("i.idle"), "idle"),
    h("span", {}, "Shares are those of the busiest subtask over 10 s, rates over 60 s."));
}
