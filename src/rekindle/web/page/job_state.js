// What the page knows of a job: the live document, kept up to date by events, and documents that it asks for as needed.

import { get, jobPath } from "./server.js";

const MOST = 300;
const OVER = new Set(["FINISHED", "CANCELED", "FAILED", "SUSPENDED"]);

/** Whether nothing will happen to the job any more. */
export const isOver = (live) => OVER.has(live.state);

/** The live document with what an event brought: events have only the last epochs and checkpoints. */
export function merged(known, news) {
  if (!known) return news;
  const firstEpoch = news.epochs[0]?.["end-time"] ?? Infinity;
  const ids = new Set(news.checkpoints.trend.map((each) => each.id));
  const epochs = [...known.epochs.filter((each) => each["end-time"] < firstEpoch), ...news.epochs];
  const trend = [...known.checkpoints.trend.filter((each) => !ids.has(each.id)), ...news.checkpoints.trend];
  return { ...news, epochs: epochs.slice(-MOST), checkpoints: { ...news.checkpoints, trend: trend.slice(-MOST) } };
}

/** The documents of one job. `changed` is called after each change. */
export class JobState {
  constructor(jobId, changed, isHistory = false) {
    this.isHistory = isHistory;
    this.path = jobPath(jobId);
    this.changed = changed;
    this.live = null;
    this.received = 0;
    this.isFrozen = false;
    this.documents = new Map();
  }

  /** Ask for everything; throws when the job is not there. */
  async load() {
    const live = await get(`${this.path}/live?most=${MOST}`);
    for (const known of this.documents.values()) if (known.failed) known.version = null;
    this.take(live, false);
  }

  take(news, isEvent = true) {
    const live = { ...news, vertices: news.vertices.map((each) => ({ ...each, name: each.name.replaceAll(" -> ", " → ") })) };
    this.live = isEvent ? merged(this.live, live) : live;
    this.received = performance.now();
    this.changed();
  }

  /** The driver's time. It stands still when the job is over, or the driver gone. */
  get now() {
    const still = this.isFrozen || isOver(this.live);
    return this.live.now + (still ? 0 : performance.now() - this.received);
  }

  /** A document below the job, asked for again when `version` changes; undefined until it is there.
   *
   * The one before stays until the new one has come, and if that fails. Without one before there is `{ error }`. */
  document(path, version) {
    const known = this.documents.get(path) ?? { version: null, value: undefined };
    if (known.version !== version && !known.busy) {
      this.documents.set(path, known);
      Object.assign(known, { version, busy: true });
      get(`${this.path}/${path}`)
        .then((value) => Object.assign(known, { value, failed: false }),
          (error) => Object.assign(known, { value: known.failed === false ? known.value : { error: error.message }, failed: true }))
        .then(() => { known.busy = false; this.changed(); });
    }
    return known.value;
  }

  /** Flink's statistics of checkpoints, with the causes of failed ones. */
  get checkpoints() {
    const { completed, failed, "in-progress": open } = this.live.checkpoints;
    return this.document("checkpoints", `${completed} ${failed} ${open} ${this.live.attempt}`);
  }

  get failures() {
    return this.live.failures ? this.document("failures", this.live.failures) : { failures: [] };
  }

  vertexName(id) {
    return this.live.vertices.find((each) => each.id === id)?.name ?? id;
  }
}
