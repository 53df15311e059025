"""Flink's own dashboard in a headless Chromium, with the answers of a running job of ours: no console error."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, Route, sync_playwright

from tools.compat.flink.flink_package import dashboard
from tools.compat.flink.running_job import RunningJob, Tally, running_job

#: The dashboard asks again every few seconds: errors of the second round count too.
_LOOK_MS = 12_000


def main(arguments: Sequence[str]) -> int:
    """Look at each page of the dashboard."""
    tally = Tally()
    with running_job() as job, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        pages = {
            "overview": ("overview", "endless"),
            "job": (f"job/running/{job.id}/overview", "endless"),
            "checkpoints": (f"job/running/{job.id}/checkpoints", "Checkpoint Counts"),
            "exceptions": (f"job/running/{job.id}/exceptions", "Root Exception"),
        }
        for name, (address, wanted) in pages.items():
            errors, text = _look_at(browser.new_page(), job, address)
            shown = wanted in text
            tally.check(f"dashboard: {name}", shown and not errors, "; ".join(errors) or f"'{wanted}' is not shown")
        browser.close()
    return tally.result()


def _look_at(page: Page, job: RunningJob, address: str) -> tuple[list[str], str]:
    """The errors of a page, and its text."""
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("response", lambda answer: errors.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
    page.route(f"{job.url}/**", _serve)
    page.goto(f"{job.url}/#/{address}")
    page.wait_for_timeout(_LOOK_MS)
    text = page.inner_text("body")
    page.close()
    return errors, text


def _serve(route: Route) -> None:
    """Answer with a file of the dashboard if there is one of that name, else let our server answer."""
    path = urlsplit(route.request.url).path.lstrip("/") or "index.html"
    folder = dashboard().resolve()
    file = (folder / path).resolve()
    if file.is_file() and Path(os.path.commonpath([folder, file])) == folder:
        route.fulfill(path=file)
    else:
        route.continue_()
