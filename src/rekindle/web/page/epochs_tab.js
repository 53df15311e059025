// Epochs: each is one Spark job.

import { lines } from "./charts.js";
import { h } from "./dom.js";
import * as f from "./format.js";
import { safeLink, section, table } from "./words.js";

const COLUMNS = [
  ["Epoch"], ["Ended"], ["Duration", true], ["Work", true], ["Records in", true], ["Records out", true],
  ["In flight", true], ["Watermark"],
];
const SHOWN = 25;

export function epochsTab(job) {
  const { live } = job;
  const spark = !job.isHistory && live["spark-url"] && safeLink(live["spark-url"]);
  const points = live.epochs.map((each) => ({ ...each, at: each["end-time"] }));
  const now = job.now;
  const rows = live.epochs.slice(-SHOWN).reverse().map((each) => row(each, now));
  return [
    h("p.hint", {}, "An epoch is one Spark job: it carries what came since the one before through all tasks. ",
      spark ? h("a", { href: spark, target: "_blank", rel: "noreferrer" }, "See them on Spark’s page ↗") : null),
    h("div.charts", {},
      lines({
        title: "Records per second", unit: f.rate, now,
        points: points.slice(1).map((each, index) => ({ ...each, before: points[index].at })),
        series: [
          ["first", "in", (each) => perSecond(each, "records-in")],
          ["second", "out", (each) => perSecond(each, "records-out")],
        ],
      }),
      lines({
        title: "Time of an epoch", unit: f.duration, now, points,
        series: [["second", "duration", (each) => each.duration], ["first", "work of the tasks", (each) => each.work]],
      })),
    section("The last epochs", table("The last epochs", COLUMNS, rows, "No epoch has ended yet.")),
  ];
}

const row = (each, now) => ({
  key: `${each.epoch} ${each["end-time"]}`,
  cells: [
    f.exactly(each.epoch), f.time(each["end-time"], now), f.duration(each.duration), f.duration(each.work),
    f.exactly(each["records-in"]), f.exactly(each["records-out"]), f.exactly(each["in-flight"]), f.watermark(each.watermark),
  ],
});

const perSecond = (each, name) => (1000 * each[name]) / Math.max(each.at - each.before, each.duration, 1);
