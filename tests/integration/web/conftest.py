"""Jobs that run without Spark, shown by one server: a running one that has failed once, and three that are over."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rekindle.coordinator.job import JobMaster
from rekindle.datastream import MapFunction, RuntimeContext, SinkFunction, SourceFunction
from tests.support.environments import checkpointed, environment
from tests.support.local_cluster import launch_locally
from tests.support.rest_client import RestClient
from tests.support.waiting import wait_until

DEADLINE_S = 60
SERVER: dict[str, Any] = {"rest.port": "0", "heartbeat.interval": "1 s"}


class Numbers(SourceFunction):
    """Emits numbers, some hundred a second, until it is cancelled."""

    def __init__(self) -> None:
        self._runs = True

    def run(self, ctx: Any) -> None:
        number = 0
        while self._runs:
            ctx.collect(number)
            number += 1
            time.sleep(0.004)  # the pace of the outside world, not a wait for something

    def cancel(self) -> None:
        self._runs = False


class FailsOnce(MapFunction):
    """Fails at a record in the first attempt, or in every one; counts what it sees."""

    def __init__(self, at: int, always: bool = False) -> None:
        self._at, self._always = at, always

    def open(self, runtime_context: RuntimeContext) -> None:
        self._attempt = runtime_context.get_attempt_number()
        self._seen = runtime_context.get_metrics_group().add_group("orders").counter("seen")
        self._lengths = runtime_context.get_metrics_group().distribution("length")
        self._rate = runtime_context.get_metrics_group().meter("rate")

    def map(self, value: int) -> int:
        if value == self._at and (self._always or self._attempt == 0):
            raise ValueError(f"order {value} has no amount")
        self._seen.inc()
        self._lengths.update(len(str(value)))
        self._rate.mark_event()
        return value


class Discard(SinkFunction):
    """Takes every record and keeps none."""

    def invoke(self, value: int, context: Any) -> None:
        """Nothing to do."""


@dataclass
class Shown:
    """The server and its jobs."""

    client: RestClient
    url: str
    directory: Path
    running: JobMaster
    failed: JobMaster
    cancelled: JobMaster
    finished: JobMaster

    @property
    def job(self) -> str:
        """The path of the running job."""
        return f"/v1/jobs/{self.running.job_id}"

    def vertex(self, name: str) -> str:
        """The id of a task of the running job."""
        vertices = self.client.get(self.job)["vertices"]
        return next(each["id"] for each in vertices if name in each["name"])


def pipeline(env: Any, mapper: MapFunction, name: str) -> Any:
    numbers = env.add_source(Numbers()).name("numbers").uid("numbers")
    numbers.key_by(lambda n: n % 4, key_type=int).map(mapper).name("check").uid("check").disable_chaining().filter(
        lambda n: True
    ).name("keep").add_sink(Discard())
    return env._program(name)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The jobs start side by side: each starts slots, which takes the longest."""
    from rekindle.web import attach

    directory = tmp_path_factory.mktemp("checkpoints")
    place: dict[str, Any] = {"execution.checkpointing.savepoint-dir": os.fspath(directory / "savepoints")}
    running = launch_locally(
        pipeline(checkpointed(2, 300, directory=directory, restarts=50, **place, **SERVER), FailsOnce(60), "golden-job")
    )
    failed = launch_locally(pipeline(environment(1, **SERVER), FailsOnce(5, always=True), "fail-me"))
    cancelled = launch_locally(
        pipeline(checkpointed(1, 300, directory=directory, **SERVER), FailsOnce(-1), "cancel-me")
    )
    bounded = environment(1, **SERVER)
    bounded.from_collection([1, 2, 3], int).map(lambda n: n).add_sink(Discard())
    finished = launch_locally(bounded._program("no-cp"))
    # Another test of this process may have left a server with other settings.
    (server,) = [each for each in attach._servers.values() if each.jobs.running(str(running.job_id)) is not None]
    client = RestClient(server.url)
    shown = Shown(client, server.url, directory, running, failed, cancelled, finished)
    try:
        wait_until(lambda: client.get("/jobs/overview")["jobs"], "the jobs to be listed", DEADLINE_S)
        await_state(client, cancelled, "RUNNING")
        # Flink's answer has a completed checkpoint.
        wait_until(lambda: counts(client, cancelled)["completed"], "a checkpoint of a job to cancel", DEADLINE_S)
        cancelled.cancel().result(DEADLINE_S)
        failed.result().exception(DEADLINE_S)
        finished.result().result(DEADLINE_S)
        await_restart(client, running)
        yield shown
    finally:
        running.cancel().result(DEADLINE_S)


def await_state(client: RestClient, job: JobMaster, state: str) -> None:
    wait_until(lambda: client.get(f"/jobs/{job.job_id}/status")["status"] == state, f"{state} of a job", DEADLINE_S)


def counts(client: RestClient, job: JobMaster) -> dict[str, int]:
    """The numbers of a job's checkpoints."""
    return client.get(f"/jobs/{job.job_id}/checkpoints")["counts"]


def await_restart(client: RestClient, job: JobMaster) -> None:
    """The job has failed once, runs again, and has made checkpoints."""
    wait_until(
        lambda: client.get(f"/jobs/{job.job_id}/exceptions")["exceptionHistory"]["entries"], "failure", DEADLINE_S
    )
    await_state(client, job, "RUNNING")
    wait_until(lambda: counts(client, job)["completed"] > 3, "checkpoints after the restart", DEADLINE_S)
