"""Flink's own dashboard in a headless Chromium, with the answers of a running job of ours: no console error.

Pictures of its pages stay in `.cache/compat/screenshots`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Route, sync_playwright

from tools.compat.flink.flink_package import dashboard
from tools.compat.flink.running_job import RunningJob, Tally, running_job

#: The dashboard asks again every few seconds: errors of the second round count too.
_LOOK_MS = 8_000
_PICTURES = Path(__file__).resolve().parents[2] / ".cache" / "compat" / "screenshots"


@dataclass(frozen=True)
class View:
    """A page of the dashboard: its address, the words that must be on it, and what is clicked first."""

    name: str
    address: str
    words: tuple[str, ...]
    click: str = ""


def views(job: RunningJob) -> list[View]:
    """The pages that are looked at: the list, the job with its tabs, and the drawer of a task with its tabs."""
    details = job.ask(f"jobs/{job.id}")
    task = next(each for each in details["vertices"] if "Reduce" in each["name"] or "Map" in each["name"])
    own = f"job/running/{job.id}"
    drawer = f"{own}/overview/{task['id']}"
    return [
        View("overview", "overview", ("Running Application List", "SingleJobApplication(endless)", "RUNNING")),
        View("running jobs", "job/running", ("Running Jobs", "endless", "RUNNING")),
        View("job", f"{own}/overview", ("endless", "Parallelism: 2", "Records Received")),
        View("timeline", f"{own}/timeline", ("endless",)),
        View("exceptions", f"{own}/exceptions", ("ValueError: once", "Exception History")),
        View("checkpoints", f"{own}/checkpoints", ("Checkpoint Counts", "Latest Completed Checkpoint")),
        View("checkpoints history", f"{own}/checkpoints", ("COMPLETED", "Trigger Time"), "History"),
        View("checkpoints summary", f"{own}/checkpoints", ("End to End Duration", "Checkpointed Data Size"), "Summary"),
        View("checkpoints configuration", f"{own}/checkpoints", ("Exactly Once", "Interval"), "Configuration"),
        View("configuration", f"{own}/configuration", ("Execution Configuration",)),
        View("task detail", f"{drawer}/detail", (task["name"], "Max Parallelism")),
        View("task subtasks", f"{drawer}/subtasks", ("Attempt",)),
        View("task watermarks", f"{drawer}/watermarks", ("Watermark",)),
        View("task backpressure", f"{drawer}/backpressure", ("Back Pressure Status",)),
        View("task metrics", f"{drawer}/metrics", ("Add Metric",)),
        View("task managers", "task-manager", ("Slots",)),
    ]


def main(arguments: Sequence[str]) -> int:
    """Look at each page of the dashboard."""
    tally = Tally()
    files = dashboard()
    with running_job() as job, sync_playwright() as playwright:
        program = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for view in views(job):
            errors, text = look_at(browser, job, view, files)
            missing = [word for word in view.words if word not in text]
            tally.check(f"dashboard: {view.name}", not errors and not missing, "; ".join([*errors, *missing]))
        browser.close()
    return tally.result()


def look_at(browser: Browser, job: RunningJob, view: View, files: Path) -> tuple[list[str], str]:
    """The errors of a page, and its text."""
    errors: list[str] = []
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("response", lambda answer: errors.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
    page.route(f"{job.url}/**", lambda route: _serve(route, files.resolve()))
    page.goto(f"{job.url}/#/{view.address}")
    if view.click:
        page.get_by_role("tab", name=view.click, exact=True).last.click()
    page.wait_for_timeout(_LOOK_MS)
    text = _picture(page, view)
    page.close()
    return errors, text


def _picture(page: Page, view: View) -> str:
    """Keep a picture of the page; its text."""
    _PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=_PICTURES / f"{view.name.replace(' ', '-')}.png")
    return page.locator("body").inner_text().replace("\xa0", " ")  # as its editor writes spaces


def _serve(route: Route, folder: Path) -> None:
    """Answer with a file of the dashboard if there is one of that name, else let our server answer."""
    path = urlsplit(route.request.url).path.lstrip("/") or "index.html"
    file = (folder / path).resolve()
    if file.is_file() and Path(os.path.commonpath([folder, file])) == folder:
        route.fulfill(path=file)
    else:
        route.continue_()
