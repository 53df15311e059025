// What is wrong with a job now, in a sentence with the way to its cause.

import { h } from "./dom.js";
import * as f from "./format.js";
import { isOver } from "./job_state.js";

export function notices(job, base, chosen) {
  return [failure(job, base, chosen), failedCheckpoint(job, base, chosen), bottleneck(job, chosen)];
}

const notice = (kind, headline, text, link) =>
  h("div.notice", { class: kind, "data-key": headline }, h("strong", {}, headline), h("span", {}, text), link);

function failure(job, base, chosen) {
  const { live } = job;
  const last = live["last-failure"];
  const isNow = ["FAILED", "FAILING", "RESTARTING"].includes(live.state);
  if (!last || chosen === "exceptions" || (!isNow && job.now - last.timestamp > 600_000)) return null;
  const where = last.operator ? ` in ${last.operator}` : "";
  const then = { FAILED: "", FAILING: "", RESTARTING: " and restarts" }[live.state] ?? " and restarted";
  const headline = `The job failed${where}${then}`;
  const what = last.record == null ? last.summary : `${last.summary} — at record ${last.record}`;
  return notice(isNow ? "bad" : "warn", headline, what, h("a", { href: `${base}/exceptions` }, "See the exception"));
}

/** The line of a traceback that names the exception. */
export function lastLine(failure) {
  const lines = failure.message.split("\n");
  const named = lines.find((line) => line.startsWith(failure.exception)) ?? lines.find((line) => line.trim())
    ?? failure.exception;
  return named.length > 200 ? `${named.slice(0, 200)} …` : named;
}

/** The first sentence of the cause of a failed checkpoint. */
export const cause = (checkpoint) => (checkpoint.failure_message || "The driver knows no cause.").split("\n")[0];

function failedCheckpoint(job, base, chosen) {
  const latest = job.checkpoints?.latest;
  const failed = latest?.failed;
  if (!failed || chosen === "checkpoints" || failed.id < (latest.completed?.id ?? 0)) return null;
  // The failure of the job, which is said above, has aborted it.
  if (job.live["last-failure"] && failed.failure_message?.startsWith("FailoverRegion is restarting.")) return null;
  const at = failed.failure_timestamp;
  const when = isOver(job.live) ? `at ${f.time(at, job.now)}` : f.ago(job.now - at);
  const headline = `${failed.is_savepoint ? "Savepoint" : "Checkpoint"} ${failed.id} failed ${when}`;
  const link = h("a", { href: `${base}/checkpoints/${failed.id}` }, "See the cause");
  const shown = notice("warn", headline, cause(failed), link);
  shown.dataset.key = `checkpoint-${failed.id}`;
  return shown;
}

/** The task that holds the others back: busy, and those before it wait. */
export function bottleneckOf(live) {
  if (isOver(live)) return null;
  const waits = new Set(live.vertices.filter((each) => each["back-pressured"] >= 0.1).map((each) => each.id));
  const before = (id) => live.edges.filter((edge) => edge.target === id).map((edge) => edge.source);
  const slow = live.vertices.filter((each) => each.busy >= 0.5 && before(each.id).some((id) => waits.has(id)));
  return slow.reduce((most, each) => (each.busy > (most?.busy ?? 0) ? each : most), null);
}

/** Said where it matters: a slow task also makes checkpoints late. */
function bottleneck({ live }, chosen) {
  const slow = bottleneckOf(live);
  if (!slow || !["graph", "checkpoints"].includes(chosen)) return null;
  const text = `It is busy ${f.share(slow.busy)} of the time, and the tasks before it wait for it.`;
  const shown = notice("warn", `${slow.name} holds the job back`, text);
  shown.dataset.key = "bottleneck";
  return shown;
}
