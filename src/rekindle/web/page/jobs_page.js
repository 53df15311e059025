// The list of jobs.

import { Connection } from "./connection.js";
import { h, render } from "./dom.js";
import * as f from "./format.js";
import { isOver } from "./job_state.js";
import { get, jobPath } from "./server.js";
import { clipped, state, table } from "./words.js";

const COLUMNS = [["Job"], ["State"], ["Started"], ["Duration", true], ["Records in", true], ["Last checkpoint", true], ["Failures"]];

export class JobsPage {
  constructor(frame) {
    this.frame = frame;
    this.jobs = null;
    this.live = new Map();
    frame.crumbs("Jobs");
    frame.title("");
    this.load();
    this.connection = new Connection(null, {
      onEvent: (name, data) => (name === "jobs" ? this.list(data.jobs) : this.hear(data)),
      onState: (each) => frame.connection(each),
      onBack: () => this.load(),
    });
  }

  show() {}

  close() {
    this.closed = true;
    this.connection.close();
  }

  async load() {
    try {
      this.list((await get("jobs/overview")).jobs);
    } catch (error) {
      if (!this.closed && !this.jobs) render(this.frame.content, h("p.empty", {}, error.message));
    }
  }

  list(jobs) {
    this.jobs = [...jobs].sort((one, other) => other["start-time"] - one["start-time"]);
    this.draw();
    for (const job of jobs) if (this.live.get(job.jid)?.state !== job.state) this.ask(job.jid);
  }

  /** The figures of a job that is over come in no event. */
  async ask(jobId) {
    try {
      this.hear(await get(`${jobPath(jobId)}/live?most=1`));
    } catch {
      // the list stays without them
    }
  }

  hear(live) {
    this.live.set(live.jid, live);
    this.draw();
  }

  draw() {
    if (this.closed || !this.jobs) return;
    const rows = this.jobs.map((job) => this.row(job, this.live.get(job.jid)));
    const empty = this.frame.features["web-history"] ? "No run has left a history here." : "No job has started yet.";
    render(this.frame.content, h("h1", {}, "Jobs"), h("div.cards", {}, table("Jobs", COLUMNS, rows, empty)));
  }

  row(job, live) {
    const now = live?.state ?? job.state;
    const link = h("a.name", { href: `#/jobs/${job.jid}` }, clipped(job.name));
    return {
      key: job.jid,
      cells: [
        [link, h("span.id", {}, job.jid)],
        state(now),
        f.time(job["start-time"], live?.now),
        f.duration(live?.duration ?? job.duration),
        live ? f.count(live["records-in"]) : f.NOTHING,
        live ? lastCheckpoint(live) : f.NOTHING,
        live ? trouble(job, live) : "",
      ],
    };
  }
}

function lastCheckpoint(live) {
  if (live["checkpoint-age"] === null) return "none";
  return isOver(live) ? `${f.count(live.checkpoints.completed)} made` : f.ago(live["checkpoint-age"]);
}

/** What went wrong, as links to the causes. */
function trouble(job, live) {
  const failed = live.checkpoints.failed;
  const marks = [
    live.failures ? h("a.mark.bad", { href: `#/jobs/${job.jid}/exceptions` }, f.many(live.failures, "failure")) : null,
    failed ? h("a.mark.warn", { href: `#/jobs/${job.jid}/checkpoints` }, f.many(failed, "failed checkpoint")) : null,
  ].filter(Boolean);
  return marks.length ? h("span.marks", {}, marks) : h("span.none", {}, "none");
}
