// The checkpoints of a job: over time, one by one, and on disk.

import { bars } from "./charts.js";
import { checkpointPart } from "./checkpoint_part.js";
import { h } from "./dom.js";
import * as f from "./format.js";
import { isOver } from "./job_state.js";
import { cause } from "./notices.js";
import { clipped, figure, figures, section, state, table } from "./words.js";

const COLUMNS = [
  ["Checkpoint"], ["Status"], ["Triggered"], ["Duration", true], ["Written", true], ["State", true], ["Answers", true], ["Note"],
];
const NAMES = { CHECKPOINT: "Checkpoint", SAVEPOINT: "Savepoint", SYNC_SAVEPOINT: "Stop" };

export function checkpointsTab(job, base, [chosen]) {
  const here = `${base}/checkpoints`;
  const known = job.checkpoints;
  const history = known?.history ?? [];
  const empty = known?.error ?? (known ? "No checkpoint was made yet." : "Loading …");
  const rows = history.map((each) => row(job, here, each, String(each.id) === chosen));
  return [
    chosen ? checkpointPart(job, Number(chosen), here) : null,
    known?.counts ? counts(job, known) : null,
    h("div.charts", { "data-key": "charts" }, charts(job, here, history)),
    section("The last checkpoints", table("The last checkpoints", COLUMNS, rows, empty)),
    onDisk(job),
  ];
}

function counts(job, { counts: made, summary, latest }) {
  const { interval } = job.live.checkpoints;
  const { restored } = latest;
  const times = summary.end_to_end_duration;
  return figures(
    figure("Completed", f.count(made.completed), interval > 0 ? `one every ${f.duration(interval)}` : "no interval set"),
    figure("Failed", f.count(made.failed), latest.failed ? `the last was ${latest.failed.id}` : "none", made.failed ? "warn" : null),
    made.completed ? figure("Duration", f.duration(times.avg), `average; at most ${f.duration(times.max)}`) : null,
    made.completed ? figure("Written", f.bytes(summary.checkpointed_size.avg), "average of one") : null,
    figure("Restored from", restored ? `${restored.is_savepoint ? "savepoint" : "checkpoint"} ${restored.id}` : f.NOTHING,
      restored ? f.time(restored.restore_timestamp, job.now) : "began without one"));
}

function charts(job, here, history) {
  const { trend } = job.live.checkpoints;
  const kept = new Set(history.map((each) => each.id));
  const kind = (each) => (each.status === "FAILED" ? "bad" : each["is-savepoint"] ? "second" : "first");
  const points = (name, unit) => trend.map((each) => ({
    key: `bar-${each.id}`,
    value: Math.max(0, each[name]),
    kind: kind(each),
    title: `${each["is-savepoint"] ? "Savepoint" : "Checkpoint"} ${each.id}, ${f.time(each["trigger-time"], job.now)}: `
      + `${unit(each[name])}${each.status === "FAILED" ? ", failed" : ""}`,
    href: kept.has(each.id) ? `${here}/${each.id}` : null,
  }));
  const [first, last] = [trend[0], trend.at(-1)].map((each) => (each ? f.time(each["trigger-time"], job.now) : ""));
  const kinds = new Set(trend.map(kind));
  const names = { first: "checkpoint", second: "savepoint", bad: "failed" };
  const key = (each) => h("span.key", {}, h("i", { class: each }), names[each]);
  const note = () => Object.keys(names).filter((each) => kinds.has(each)).map(key);
  return [
    bars({ title: "Duration", note: note(), unit: f.duration, points: points("duration", f.duration), first, last }),
    bars({ title: "Written", note: note(), unit: f.bytes, points: points("checkpointed-size", f.bytes), first, last }),
  ];
}

function row(job, here, each, isChosen) {
  const failed = each.status === "FAILED";
  const href = `${here}/${each.id}`;
  return {
    key: each.id,
    kind: isChosen ? "chosen" : null,
    cells: [
      h("a", { href, "aria-current": isChosen ? "true" : null }, `${NAMES[each.checkpoint_type]} ${each.id}`),
      state(each.status),
      f.time(each.trigger_timestamp, job.now),
      f.duration(each.end_to_end_duration),
      f.bytes(failed ? null : each.checkpointed_size),
      f.bytes(failed ? null : each.state_size),
      `${each.num_acknowledged_subtasks} of ${each.num_subtasks}`,
      failed ? h("a.cause", { href }, clipped(cause(each))) : each.discarded ? h("span.none", {}, "deleted since") : "",
    ],
  };
}

const DISK = [["Path"], ["Kind"], ["Made"], ["State", true], [""]];

/** What is on disk; asked for when the person opens it. */
function onDisk(job) {
  const { directory, completed } = job.live.checkpoints;
  if (!directory) return null;
  const known = job.opensDisk ? job.document("catalogue", isOver(job.live) ? "over" : completed) : undefined;
  const rows = (known?.checkpoints ?? []).map((each) => ({
    key: each.path,
    cells: [
      h("code", {}, each.path), `${each.kind.toLowerCase()} ${each.id}`, f.time(each.timestamp, job.now), f.bytes(each["state-size"]),
      each.damage ? h("span.mark.bad", {}, each.damage) : each["is-latest"] ? h("span.mark.good", {}, "latest") : "",
    ],
  }));
  const opened = (event) => {
    if (!event.currentTarget.open || job.opensDisk) return;
    job.opensDisk = true;
    job.changed();
  };
  const empty = known?.error ?? (known || !job.opensDisk ? "There is none." : "Loading …");
  return h("details.part", { "data-key": "disk", ontoggle: opened },
    h("summary", {}, "On disk"), table("Checkpoints on disk", DISK, rows, empty));
}
