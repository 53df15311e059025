// One job: its head, what is wrong with it, and its tabs.

import { Actions } from "./actions.js";
import { checkpointsTab } from "./checkpoints_tab.js";
import { Connection } from "./connection.js";
import { h, render } from "./dom.js";
import { epochsTab } from "./epochs_tab.js";
import { exceptionsTab } from "./exceptions_tab.js";
import * as f from "./format.js";
import { graphTab } from "./graph_tab.js";
import { JobState, isOver } from "./job_state.js";
import { notices } from "./notices.js";
import { slotsTab } from "./slots_tab.js";
import { showChosen, tabList } from "./tabs.js";
import { figure, figures, safeLink, state } from "./words.js";

const TABS = { graph: graphTab, checkpoints: checkpointsTab, exceptions: exceptionsTab, slots: slotsTab, epochs: epochsTab };
const TICK_MS = 1000;

export class JobPage {
  constructor(frame, jobId) {
    this.frame = frame;
    this.jobId = jobId;
    this.route = [];
    this.state = new JobState(jobId, () => this.draw(), frame.features["web-history"]);
    this.actions = new Actions(this.state, frame.features, () => this.draw());
    this.load();
    this.timer = setInterval(() => this.state.live && !isOver(this.state.live) && this.draw(), TICK_MS);
    this.resized = () => this.draw();
    addEventListener("resize", this.resized);
  }

  show(route) {
    this.route = route;
    this.draw();
  }

  close() {
    this.closed = true;
    clearInterval(this.timer);
    removeEventListener("resize", this.resized);
    this.connection?.close();
  }

  async load() {
    try {
      await this.state.load();
      this.listen();
    } catch (error) {
      if (this.closed || (this.state.live && error.status !== 404)) return;
      this.close(); // a new driver may have taken the place of the old one: it knows other jobs
      const all = h("p", {}, h("a", { href: "#/" }, "All jobs"));
      render(this.frame.content, h("h1", {}, "This job is not here"), h("p", {}, error.message), all);
    }
  }

  listen() {
    if (this.closed || this.connection) return;
    this.connection = new Connection(this.jobId, {
      onEvent: (name, data) => this.hear(name, data),
      onState: (each) => this.connected(each),
      onBack: () => this.load(),
    });
  }

  hear(name, data) {
    if (name === "job") this.state.take(data);
    else if (this.frame.features["web-history"]) this.load(); // a history tells only that something is new
  }

  connected(connection) {
    this.lastConnection = connection;
    this.state.isFrozen = connection.is === "gone";
    this.draw();
  }

  draw() {
    const { live } = this.state;
    if (this.closed || !live) return;
    const base = `#/jobs/${this.jobId}`;
    const chosen = TABS[this.route[0]] ? this.route[0] : "graph";
    if (this.lastConnection) this.frame.connection(this.lastConnection, live);
    this.frame.crumbs(h("a", { href: "#/" }, "Jobs"), h("span", { "aria-current": "page" }, live.name));
    this.frame.title(live.name);
    render(
      this.frame.content,
      h("div.head", {}, h("h1", {}, live.name), state(live.state, this.state.isFrozen && !isOver(live)), this.actions.buttons()),
      facts(this.state),
      h("div.notices", { role: "status", "data-key": "outcomes" }, this.actions.outcomes()),
      h("div.notices", { "data-key": "notices" }, notices(this.state, base, chosen)),
      headline(this.state),
      tabList("Parts of the job", base, tabs(this.state), chosen),
      h("div.panel", {
        id: "panel", role: "tabpanel", tabindex: "-1", "aria-labelledby": `tab-${chosen}`, "data-key": `panel-${chosen}`,
      }, TABS[chosen](this.state, base, this.route.slice(1))),
    );
    if (this.shownTab !== chosen) showChosen(this.frame.content);
    this.shownTab = chosen;
  }
}

function tabs({ live }) {
  const { failed } = live.checkpoints;
  return [
    ["graph", "Graph"],
    ["checkpoints", "Checkpoints", failed ? `${f.count(failed)} failed` : null, "warn"],
    ["exceptions", "Exceptions", live.failures ? f.count(live.failures) : null, "bad"],
    ["slots", "Slots", live.slots.length ? f.count(live.slots.length) : null],
    ["epochs", "Epochs"],
  ];
}

function facts({ live, now, isHistory, isFrozen }) {
  const ran = isOver(live) ? live.duration : now - live["start-time"];
  const spark = !isHistory && !isFrozen && live["spark-url"] && safeLink(live["spark-url"]);
  return h("ul.facts", {},
    h("li", {}, `Started ${f.time(live["start-time"], now)}`),
    h("li", {}, `${isOver(live) ? "ran for" : "for"} ${f.duration(ran)}`),
    live.restarts ? h("li", {}, f.many(live.restarts, "restart")) : null,
    spark ? h("li", {}, h("a", { href: spark, target: "_blank", rel: "noreferrer" }, "Spark’s page ↗")) : null,
    h("li.id", {}, live.jid));
}

const sum = (list, name) => list.reduce((total, each) => total + (each[name] ?? 0), 0);

/** The few figures that tell how a job is, or was. */
function headline(job) {
  const { live } = job;
  const sizes = live.vertices.some((each) => each["state-size"] !== null);
  const stored = figure("State", sizes ? f.bytes(sum(live.vertices, "state-size")) : f.NOTHING, "in the last checkpoint");
  if (isOver(live)) {
    return figures(
      figure("Records in", f.count(live["records-in"]), "in all"),
      figure("Records out", f.count(live["records-out"]), "in all"),
      figure("Checkpoints", f.count(live.checkpoints.completed), "completed"),
      stored);
  }
  const without = (side) => live.vertices.filter((each) => !live.edges.some((edge) => edge[side] === each.id));
  const lags = live.vertices.map((each) => each["watermark-lag"]).filter((each) => each !== null);
  const busiest = live.vertices.reduce((most, each) => (each.busy > (most?.busy ?? -1) ? each : most), null);
  return figures(
    figure("Records in", f.rate(sum(without("target"), "records-in-per-second")), `${f.count(live["records-in"])} in all`),
    figure("Records out", f.rate(sum(without("source"), "records-out-per-second")), `${f.count(live["records-out"])} in all`),
    figure("Busiest task", busiest ? f.share(busiest.busy) : f.NOTHING, busiest?.name),
    figure("Watermark lag", f.lag(lags.length ? Math.max(...lags) : null), lags.length ? "at the slowest task" : "no watermark yet"),
    lastGood(job),
    stored);
}

/** How much work a failure now would repeat. */
function lastGood({ live, now }) {
  const { interval } = live.checkpoints;
  const age = live["checkpoint-age"] === null ? null : live["checkpoint-age"] + now - live.now;
  const isLate = age !== null && interval > 0 && age > 3 * interval + 10_000;
  const note = interval > 0 ? `one every ${f.duration(interval)}` : "no interval set";
  return figure("Last good checkpoint", age === null ? "none" : f.ago(age), note, isLate ? "warn" : null);
}
