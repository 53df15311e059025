"""One browser for the tests of a file, and a server with jobs in every state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser

from rekindle.common import Configuration
from rekindle.coordinator.job_events import JobOver
from rekindle.web.rest_server import RestServer
from rekindle.web.rest_settings import RestSettings
from rekindle.web.served_jobs import RunningJob, ServedJobs
from tests.support.browser import chromium
from tests.support.page_scenes import ShopJob
from tests.support.recorded_jobs import FakeHandle


@dataclass
class Site:
    """A server, its jobs by name, and the handles that note what the buttons do."""

    server: RestServer
    jobs: dict[str, ShopJob] = field(default_factory=dict)
    handles: dict[str, FakeHandle] = field(default_factory=dict)

    def add(self, name: str, job: ShopJob) -> ShopJob:
        self.jobs[name] = job
        self.handles[name] = FakeHandle(job.job_id)
        running = RunningJob(job.recorder, self.handles[name], ("/tmp/shop",))
        observer = self.server.jobs.add(running)
        if job.recorder.ended:
            observer.on_event(JobOver())
        return job

    def path(self, name: str, tab: str = "") -> str:
        return f"jobs/{self.jobs[name].job_id}" + (f"/{tab}" if tab else "")


def site(jobs: ServedJobs | None = None, **settings: str) -> Site:
    """A server that has no jobs yet, or these."""
    return Site(RestServer(RestSettings.of(Configuration.from_dict({"rest.port": "0", **settings})), jobs))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
