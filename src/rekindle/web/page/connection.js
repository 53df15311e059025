// The stream of events, and the word about it: live, or since when the driver does not answer.

import { get } from "./server.js";

const AGAIN_MS = 3000;

/** Listens to the events of one job, or of all; `onBack`: the driver answers again, so ask for everything. */
export class Connection {
  constructor(jobId, { onEvent, onState, onBack }) {
    this.path = jobId ? `events?job=${encodeURIComponent(jobId)}` : "events";
    this.onEvent = onEvent;
    this.onState = onState;
    this.onBack = onBack;
    this.open();
  }

  open() {
    this.source = new EventSource(this.path);
    this.source.onopen = () => {
      if (this.lost) this.onBack();
      this.lost = false;
      this.since = null;
      this.onState({ is: "live" });
    };
    this.source.onerror = () => this.retry();
    for (const name of ["jobs", "job"]) {
      this.source.addEventListener(name, (event) => this.onEvent(name, JSON.parse(event.data)));
    }
  }

  /** Ask whether the driver is there, and listen again a little later: pages over the limit of streams look this way. */
  async retry() {
    this.source.close();
    if (this.closed) return;
    try {
      await get("config");
      if (this.closed) return;
      this.since = null;
      this.onState({ is: "polling" });
      this.onBack();
    } catch (error) {
      if (this.closed) return;
      this.since ??= Date.now();
      this.onState({ is: error.status === 401 ? "refused" : "gone", since: this.since });
    }
    this.lost = true;
    this.timer = setTimeout(() => this.open(), AGAIN_MS);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source.close();
  }
}
