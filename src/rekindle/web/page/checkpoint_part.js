// One checkpoint: why it failed, who was slow, and what each operator wrote.

import { h } from "./dom.js";
import * as f from "./format.js";
import { section, state, table } from "./words.js";

export function checkpointPart(job, id, here) {
  const listed = job.checkpoints?.history?.find((each) => each.id === id);
  const version = listed ? `${listed.status} ${listed.num_acknowledged_subtasks}` : "unlisted";
  const path = `checkpoints/details/${id}`;
  const details = job.document(path, version);
  const close = h("a.quiet.small", { href: here }, "Close");
  if (!details || details.error) {
    const title = h("span.withclose", {}, h("span", {}, `Checkpoint ${id}`), close);
    return section(title, h("p.empty", {}, details?.error ?? "Loading …"));
  }
  const tasks = job.live.vertices
    .filter((task) => details.tasks[task.id])
    .map((task) => ({ task, subtasks: job.document(`${path}/subtasks/${task.id}`, version)?.subtasks ?? [] }));
  const name = details.is_savepoint ? "Savepoint" : "Checkpoint";
  return h("section.part.one", { "data-key": `checkpoint-${id}` },
    h("h2.withclose", {}, h("span", {}, `${name} ${id} `, state(details.status)), close),
    details.status === "FAILED" ? why(job, details, tasks) : null,
    facts(job, details),
    timeline(job, details, tasks),
    operators(job.document(`${path}/operators`, version)));
}

/** The cause, first, and who had not answered. */
function why(job, details, tasks) {
  const message = details.failure_message || "The driver knows no cause.";
  const isLate = message.startsWith("Checkpoint expired");
  const timeout = ` The timeout is ${f.duration(job.live.checkpoints.timeout)} (execution.checkpointing.timeout).`;
  return h("div.why", {},
    h("h3", {}, "Why it failed"),
    h("p", {}, message, isLate ? timeout : null),
    details.num_acknowledged_subtasks === 0 ? h("p.note", {}, "No subtask had answered yet.") : silence(tasks));
}

function silence(tasks) {
  const silent = tasks
    .map(({ task, subtasks }) => ({ task, missing: subtasks.filter((each) => each.className === "pending") }))
    .filter((each) => each.missing.length);
  if (!silent.length) return null;
  const named = silent.map(({ task, missing }, index) => [
    index ? "; " : "", h("b", {}, task.name), `, ${missing.length === 1 ? "subtask" : "subtasks"} `,
    missing.map((each) => each.index + 1).join(", "),
  ]);
  return h("p.note", {}, "No answer came from ", named, ".");
}

function facts(job, details) {
  const failed = details.status === "FAILED";
  return h("ul.facts", {},
    h("li", {}, `Triggered ${f.time(details.trigger_timestamp, job.now)}`),
    h("li", {}, `${failed ? "failed after" : "took"} ${f.duration(details.end_to_end_duration)}`),
    h("li", {}, `${details.num_acknowledged_subtasks} of ${f.many(details.num_subtasks, "subtask")} answered`),
    failed ? null : h("li", {}, `${f.bytes(details.checkpointed_size)} written, ${f.bytes(details.state_size)} of state`),
    details.external_path ? h("li", {}, h("code", {}, details.external_path)) : null);
}

function timeline(job, details, tasks) {
  const answers = tasks.flatMap(({ subtasks }) => subtasks).filter((each) => each.className === "completed");
  const took = answers.map((each) => each.end_to_end_duration);
  const isOpen = details.status === "IN_PROGRESS";
  const until = isOpen ? job.now - details.trigger_timestamp : details.end_to_end_duration;
  const longest = Math.max(1, ...took);
  // A timeout is far longer than the answers that came: their parts would not be seen on its scale.
  const scale = took.length && until > 4 * longest ? longest * 1.4 : Math.max(until, longest);
  const late = lateAfter(took);
  const lane = (each) => (each.className === "pending" ? silentLane(each, until, scale, isOpen) : answerLane(each, scale, late));
  return h("div.timeline", { role: "group", "aria-label": "Timeline by subtask" },
    h("h3", {}, "Timeline"),
    h("p.legend", {},
      h("span", {}, h("i.delay"), "delay until the barrier came"), h("span", {}, h("i.sync"), "synchronous"),
      h("span", {}, h("i.async"), "asynchronous"), h("span", {}, h("i.silent"), "no answer")),
    tasks.map(({ task, subtasks }) => h("div.group", { "data-key": task.id }, h("h4", {}, task.name), subtasks.map(lane))),
    h("div.ruler", { "aria-hidden": "true" },
      [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", { style: { left: `${part * 100}%` } }, f.duration(scale * part)))));
}

/** The time after which an answer is that of a straggler: far from the middle of all. */
function lateAfter(took) {
  const sorted = [...took].sort((one, other) => one - other);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  return sorted.length > 2 ? Math.max(2 * middle, middle + 20) : Infinity;
}

function piece(kind, from, length, scale) {
  if (!(length > 0)) return null;
  return h("span", { class: kind, style: { left: `${(100 * from) / scale}%`, width: `max(2px, ${(100 * length) / scale}%)` } });
}

function answerLane(each, scale, late) {
  const { start_delay: delay, checkpoint: { sync, async: later }, end_to_end_duration: all } = each;
  const isLate = all > late;
  const told = `Subtask ${each.index + 1}: delay ${f.duration(delay)}, synchronous ${f.duration(sync)}, `
    + `asynchronous ${f.duration(later)}, answered after ${f.duration(all)}`;
  return h("div.lane", { class: isLate ? "slow" : null, "data-key": `lane-${each.index}`, role: "img", "aria-label": told, title: told },
    h("span.who", {}, String(each.index + 1)),
    h("span.track", {},
      piece("rest", 0, all, scale), piece("delay", 0, delay, scale), piece("sync", delay, sync, scale),
      piece("async", delay + sync, later, scale)),
    h("span.took", {}, f.duration(all), isLate ? h("b", {}, "straggler") : null),
    h("span.size", {}, f.bytes(each.checkpointed_size)));
}

function silentLane(each, until, scale, isOpen) {
  const text = isOpen ? "waiting" : "no answer";
  return h("div.lane.silent", { "data-key": `lane-${each.index}`, role: "img", "aria-label": `Subtask ${each.index + 1}: ${text}` },
    h("span.who", {}, String(each.index + 1)),
    h("span.track", {}, piece("silent", 0, Math.min(until, scale), scale)),
    h("span.took", {}, h("b", {}, text), f.duration(until)),
    h("span.size", {}));
}

const COLUMNS = [["Operator"], ["Synchronous", true], ["Asynchronous", true], ["Written", true], ["State", true]];

/** Each operator's part: the longest times and the sums of the sizes over its subtasks. */
function operators(known) {
  const sums = new Map();
  for (const { id, subtasks } of known?.tasks ?? []) {
    for (const each of subtasks.flatMap((subtask) => subtask.operators)) {
      const key = `${id} ${each.name}`;
      const sum = sums.get(key) ?? { name: each.name, sync: 0, later: 0, written: 0, state: 0 };
      sum.sync = Math.max(sum.sync, each.sync);
      sum.later = Math.max(sum.later, each.async);
      sum.written += each.checkpointed_size;
      sum.state += each.state_size;
      sums.set(key, sum);
    }
  }
  if (!sums.size) return null;
  const rows = [...sums].map(([key, each]) => ({
    key, cells: [each.name, f.duration(each.sync), f.duration(each.later), f.bytes(each.written), f.bytes(each.state)],
  }));
  return [h("h3", {}, "Operators"), table("Operators of the checkpoint", COLUMNS, rows)];
}
