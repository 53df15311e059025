// Failures, newest first: the user's traceback, the record, and what followed.

import { h } from "./dom.js";
import * as f from "./format.js";
import { isOver } from "./job_state.js";
import { lastLine } from "./notices.js";
import { copyable } from "./words.js";

/** The command that the job's message says, if its input was recorded.
 *
 * A message may have text of the records: nothing is offered for a copy that a shell could take for more than one command,
 * or that would unpickle. */
const REPLAY = /^Replay it to that point in a debugger: (rekindle replay (?!.*--shipped)[^;&|<>$`\\!()\n]+)$/m;

export function exceptionsTab(job) {
  const known = job.failures;
  if (!known) return h("p.empty", {}, "Loading …");
  if (known.error) return [h("p.empty", {}, known.error), inShort(job)];
  if (!known.failures.length) return h("p.empty", {}, "Nothing has failed.");
  const kept = known.failures.length;
  return [
    job.live.failures > kept ? h("p.hint", {}, `The last ${kept} of ${f.many(job.live.failures, "failure")}.`) : null,
    known.failures.map((each, index) => failure(job, each, index === 0 && job.live.state === "RESTARTING")),
  ];
}

/** The last failure as the driver told it before it ended with its job. */
function inShort(job) {
  const last = job.live["last-failure"];
  return last && failure(job, { ...last, exception: last.summary, message: last.summary, attempt: job.live.attempt });
}

function failure(job, each, isNow = false) {
  const at = f.time(each.timestamp, job.now);
  const restart = each["restart-in"];
  const command = REPLAY.exec(each.message)?.[1];
  return h("article.failure", { "data-key": `${each.timestamp} ${each.attempt}` },
    h("h2", {}, lastLine(each)),
    h("ul.facts", {},
      h("li", {}, isOver(job.live) ? at : `${at}, ${f.ago(job.now - each.timestamp)}`),
      each.operator ? h("li", {}, "in ", h("b", {}, each.operator), each.subtask === null ? null : `, subtask ${each.subtask + 1}`) : null,
      h("li", {}, `attempt ${each.attempt}`),
      each.slot ? h("li.id", {}, each.slot) : null,
      restart === null ? h("li.bad", {}, "the job did not restart") : h("li", {}, `${isNow ? "restarts" : "restarted"} after ${f.duration(restart)}`)),
    each.record === null ? null : h("div.record", {}, h("h3", {}, "The record"), copyable(each.record)),
    command ? h("div.replay", {}, h("h3", {}, "Replay it to that point in a debugger"), copyable(command)) : null,
    h("h3", {}, "Traceback"),
    h("pre.trace", { tabindex: "0" }, traceback(each.message, each.exception)));
}

/** The traceback with its last line, which names the exception, set off. */
function traceback(message, exception) {
  const lines = message.split("\n");
  return lines.map((line, index) => {
    const text = index < lines.length - 1 ? `${line}\n` : line;
    if (line.startsWith(exception)) return h("b.raised", {}, text);
    return /^\s+File "/.test(line) ? h("span.file", {}, text) : text;
  });
}
