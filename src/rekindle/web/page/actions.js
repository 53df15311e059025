// The buttons: each asks back, and tells what became of it.

import { ask } from "./ask_back.js";
import { h } from "./dom.js";
import * as f from "./format.js";
import { isOver } from "./job_state.js";
import { get, send } from "./server.js";
import { copyable } from "./words.js";

const LOOK_EVERY_MS = 500;

export class Actions {
  constructor(job, features, changed) {
    this.job = job;
    this.features = features;
    this.changed = changed;
    this.done = [];
  }

  /** None for a history, or a job that is over. */
  buttons() {
    const { live } = this.job;
    if (this.features["web-history"] || isOver(live) || this.job.isFrozen) return null;
    return h("div.actions", { role: "group", "aria-label": "Act on the job" },
      h("button", { type: "button", onclick: () => this.savepoint() }, "Savepoint"),
      this.features["web-cancel"] ? h("button", { type: "button", onclick: () => this.stop() }, "Stop") : null,
      this.features["web-cancel"] ? h("button.danger", { type: "button", onclick: () => this.cancel() }, "Cancel") : null);
  }

  async savepoint() {
    const answer = await ask({
      title: "Make a savepoint?",
      text: `“${this.job.live.name}” runs on. The savepoint is yours: nothing deletes it but you.`,
      directory: this.job.live.checkpoints["savepoint-directory"] ?? "",
      button: "Make a savepoint",
    });
    if (!answer) return;
    const place = answer.directory ? { "target-directory": answer.directory } : {};
    this.operate("Savepoint", "savepoints", { "cancel-job": false, ...place });
  }

  async stop() {
    const answer = await ask({
      title: "Stop the job?",
      text: `“${this.job.live.name}” makes a savepoint and ends. It can go on from there later.`,
      directory: this.job.live.checkpoints["savepoint-directory"] ?? "",
      option: "Drain: fire all timers and windows first. Only if the job is not to go on.",
      button: "Stop the job",
    });
    if (!answer) return;
    const place = answer.directory ? { targetDirectory: answer.directory } : {};
    this.operate("Stop", "stop", { drain: answer.option, ...place });
  }

  async cancel() {
    const age = this.job.live["checkpoint-age"];
    const last = age === null
      ? "It has no checkpoint to go on from."
      : `Its last good checkpoint is ${f.duration(age + this.job.now - this.job.live.now)} old.`;
    const answer = await ask({
      title: "Cancel the job?",
      text: `“${this.job.live.name}” ends at once, without a savepoint. ${last}`,
      button: "Cancel the job",
      isDanger: true,
    });
    if (answer) this.end();
  }

  /** Start a savepoint or a stop, and look what becomes of it. */
  async operate(name, path, body) {
    const entry = this.tell({ name, kind: "busy", text: "under way …" });
    try {
      const { "request-id": id } = await send("POST", `${this.job.path}/${path}`, body);
      const { location, "failure-cause": failure } = await this.outcome(id);
      if (failure) this.tell(entry, { kind: "bad", text: "failed:", detail: failure["stack-trace"] ?? failure.class });
      else this.tell(entry, { kind: "good", text: "done. The savepoint is at", location });
    } catch (error) {
      const text = error.status
        ? `was refused: ${error.message}`
        : "The driver ended before it told the outcome. A savepoint, if there is one, is in its directory.";
      this.tell(entry, { kind: error.status ? "bad" : "warn", text });
    }
  }

  async outcome(id) {
    for (;;) {
      const { status, operation } = await get(`${this.job.path}/savepoints/${id}`);
      if (status.id === "COMPLETED") return operation;
      await new Promise((resume) => setTimeout(resume, LOOK_EVERY_MS));
    }
  }

  async end() {
    const entry = this.tell({ name: "Cancel", kind: "busy", text: "asked for …" });
    try {
      await send("PATCH", this.job.path);
      this.tell(entry, { isCancel: true });
    } catch (error) {
      this.tell(entry, { kind: "bad", text: error.status ? `was refused: ${error.message}` : "The driver did not answer." });
    }
  }

  tell(entry, news) {
    if (news) Object.assign(entry, news);
    else this.done.push(Object.assign(entry, { key: `action-${Date.now()}-${this.done.length}` }));
    this.changed();
    return entry;
  }

  forget(entry) {
    this.done = this.done.filter((each) => each !== entry);
    this.changed();
  }

  outcomes() {
    return this.done.map((each) => {
      const over = each.isCancel && isOver(this.job.live);
      const kind = over ? "good" : each.kind;
      return h("div.notice", { class: kind, "data-key": each.key },
        h("strong", {}, each.name),
        h("span", {}, over ? `done: the job is ${f.word(this.job.live.state).toLowerCase()}.` : each.text),
        each.location ? copyable(each.location) : null,
        each.detail ? h("pre", {}, each.detail) : null,
        kind === "busy" ? null : h("button.quiet.small", { type: "button", onclick: () => this.forget(each) }, "Close"));
    });
  }
}
