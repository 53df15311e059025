// One task, by subtask.

import { h } from "./dom.js";
import * as f from "./format.js";
import { isOver } from "./job_state.js";
import { load, section, state, table } from "./words.js";

const LOOK_EVERY_MS = 2000;
const COLUMNS = [
  ["Subtask"], ["Status"], ["Where"], ["Load"], ["Records in", true], ["Records out", true], ["Watermark"], ["State", true],
];

export function taskPart(job, task, base) {
  const path = `vertices/${task.id}`;
  const version = `${Math.floor(job.live.now / LOOK_EVERY_MS)} ${job.live.state}`;
  const details = job.document(path, version);
  const pressure = job.document(`${path}/backpressure`, version);
  const watermarks = job.document(`${path}/watermarks`, version);
  const stored = storedSizes(job, task);
  const rows = (details?.subtasks ?? []).map((each) => {
    const loads = isOver(job.live) ? null : pressure?.subtasks?.[each.subtask];
    return {
      key: each.subtask,
      cells: [
        String(each.subtask + 1),
        state(each.status),
        each.endpoint,
        loads ? h("span.withload", {}, load(loads.busyRatio, loads.ratio), told(loads)) : f.NOTHING,
        f.exactly(each.metrics["read-records"]),
        f.exactly(each.metrics["write-records"]),
        f.watermark(Number(watermarks?.[each.subtask]?.value ?? NaN)),
        f.bytes(stored.get(each.subtask)),
      ],
    };
  });
  const chain = task.operators.map(({ name, uid }) => h("li", {}, name, uid && name !== uid ? h("span.id", {}, uid) : null));
  return section(
    h("span.withclose", {}, h("span", {}, task.name), h("a.quiet.small", { href: base }, "Close")),
    task.operators.length > 1 ? h("div", {}, h("h3", {}, "Operators of this task"), h("ol.chain", {}, chain)) : null,
    table(`Subtasks of ${task.name}`, COLUMNS, rows, details?.error ?? "Loading …"));
}

const told = ({ busyRatio, ratio }) => `${f.share(busyRatio)} busy, ${f.share(ratio)} waits`;

/** The state of each subtask in the last completed checkpoint. */
function storedSizes(job, task) {
  const last = job.checkpoints?.latest?.completed;
  const found = last && job.document(`checkpoints/details/${last.id}/subtasks/${task.id}`, "completed");
  return new Map((found?.subtasks ?? []).map((each) => [each.index, each.state_size]));
}
