"""A server with jobs whose life the tests tell: no slots, no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Configuration
from rekindle.web.rest_server import RestServer
from rekindle.web.rest_settings import RestSettings
from rekindle.web.served_jobs import RunningJob
from tests.support.recorded_jobs import FakeHandle, RecordedJob, plan_of_three_tasks
from tests.support.rest_client import RestClient

TOKEN = "a-token-of-sixteen-letters"


@dataclass
class Served:
    server: RestServer
    client: RestClient
    job: RecordedJob
    handle: FakeHandle
    directory: Path

    @property
    def path(self) -> str:
        """The path of the job."""
        return f"/v1/jobs/{self.handle.job_id}"


def serve(directory: Path, **settings: str) -> Served:
    """A server with one running job, which has failed once and has made checkpoints."""
    settings = {"rest.port": "0", **settings}
    server = RestServer(RestSettings.of(Configuration.from_dict(settings)))
    places: dict[str, Any] = {"execution.checkpointing.dir": f"{directory}/checkpoints"}
    job = RecordedJob(plan_of_three_tasks(**places)).run()
    job.log(0, "a line")
    job.log(0, "a print", "stdout")
    job.fail()
    job.run(attempt=2)
    job.later(2)
    job.epoch()
    job.checkpoint(1)
    job.checkpoint(2, failure="Checkpoint was declined.")
    handle = FakeHandle()
    allowed = (f"{directory}/checkpoints", f"{directory}/savepoints")
    server.jobs.add(RunningJob(job.recorder, handle, allowed))
    return Served(server, RestClient(server.url), job, handle, directory)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server on loopback without a token."""
    found = serve(tmp_path_factory.mktemp("served"))
    yield found
    found.server.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a token."""
    found = serve(tmp_path_factory.mktemp("guarded"), **{"rekindle.rest.token": TOKEN})
    yield found
    found.server.close()
