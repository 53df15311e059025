// What is said when the driver does not answer.

import { h } from "./dom.js";
import { time } from "./format.js";
import { isOver } from "./job_state.js";

/** The notice about a connection; null while there is nothing to say. */
export function gone(state, job) {
  if (state.is === "refused") {
    return notice("bad", "The driver asks for a token.", "Open the link that it printed when the job started.");
  }
  if (state.is !== "gone") return null;
  if (job && isOver(job)) {
    return notice("still", "The job is over, and its driver has ended.", "What you see is its last word.", history(job));
  }
  return notice(
    "bad",
    `The driver has not answered since ${time(state.since)}.`,
    job ? "What you see is its last word: it has ended, or cannot be reached." : "It has ended, or cannot be reached.",
    " The page looks for it every 3 s.",
    history(job),
  );
}

const notice = (kind, headline, ...text) => h("div.alarm", { class: kind }, h("strong", {}, headline), h("span", {}, ...text));

function history(job) {
  const directory = job?.checkpoints.directory;
  return directory ? [" The history of its runs is kept: ", h("code", {}, `rekindle history ${directory}`)] : null;
}
