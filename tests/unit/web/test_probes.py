"""`/health` and `/ready`: what probes of Kubernetes and load balancers ask, without a token, and are told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Configuration
from rekindle.common.job_status import JobStatus
from rekindle.web.history_server import HistoryServer
from rekindle.web.rest_server import RestServer
from rekindle.web.rest_settings import RestSettings, prometheus_ports
from rekindle.web.served_jobs import RunningJob
from tests.support.recorded_jobs import FakeHandle, RecordedJob, plan_of_three_tasks
from tests.support.rest_client import Answer, RestClient
from tests.unit.web.conftest import TOKEN, Served, serve

PATHS = ("/health", "/ready", "/v1/health", "/v1/ready")
POD = "10.42.0.17:8081"


@pytest.fixture
def server() -> Iterator[RestServer]:
    """A server with a token, without a job."""
    made = RestServer(RestSettings.of(Configuration.from_dict({"rest.port": "0", "rekindle.rest.token": TOKEN})))
    yield made
    made.close()


def ready(server: RestServer) -> Answer:
    return RestClient(server.url).ask("GET", "/ready", host=POD)


def add(server: RestServer, max_age_ms: int | None = None, job_id: str = "1" * 32, **settings: Any) -> RecordedJob:
    job = RecordedJob(plan_of_three_tasks(**settings), job_id)
    server.jobs.add(RunningJob(job.recorder, FakeHandle(job_id), max_checkpoint_age_ms=max_age_ms))
    return job


@pytest.mark.parametrize("path", PATHS)
def test_they_need_no_token_and_are_asked_by_the_pods_address(guarded: Served, path):
    answer = guarded.client.ask("GET", path, host=POD)
    assert (answer.status, answer.body) == (200, {"status": "ready" if "ready" in path else "alive"})
    assert "set-cookie" not in answer.headers
    assert guarded.client.ask("HEAD", path, host=POD).status == 200


@pytest.mark.parametrize("path", PATHS)
def test_other_sites_get_no_answer_nor_does_another_method(guarded: Served, path):
    assert guarded.client.ask("GET", path, host="evil.example").status == 400
    assert guarded.client.ask("GET", path, origin="http://evil.example").status == 403
    assert guarded.client.ask("POST", path).status == 401


@pytest.mark.parametrize("path", ["/health/", "//health", "/v1/health/..", "/healthy", "/ready/x", "/health?x=1"])
def test_no_other_path_is_open(guarded: Served, path):
    assert guarded.client.ask("GET", path).status == (200 if "?" in path else 401)


def test_a_port_of_metrics_has_no_open_path(server):
    reporter = "metrics.reporter.prom"
    settings = {
        f"{reporter}.factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        f"{reporter}.port": "0",
    }
    (reported,) = prometheus_ports(Configuration.from_dict(settings))
    port = server.serve_metrics(reported)
    assert RestClient(f"http://127.0.0.1:{port}/").ask("GET", "/health").status == 401


def test_a_job_is_ready_while_it_runs(server):
    assert (ready(server).status, ready(server).error) == (503, "No job runs.")
    job = add(server)
    assert (ready(server).status, ready(server).error) == (503, "1 of 1 jobs does not run: CREATED.")
    job.run()
    assert ready(server).status == 200
    job.fail()
    other = add(server, job_id="2" * 32).run()
    assert (ready(server).status, ready(server).error) == (503, "1 of 2 jobs does not run: RESTARTING.")
    job.run(attempt=2)
    assert ready(server).status == 200
    for each in (job, other):
        each.end(JobStatus.FINISHED)
    health = RestClient(server.url).ask("GET", "/health", host=POD)
    assert (health.status, ready(server).status) == (200, 503)


def test_its_last_checkpoint_is_young_enough_if_a_setting_asks_for_that(server):
    job = add(server, 60_000, **{"execution.checkpointing.interval": "10 s"}).run()
    job.later(59)
    assert ready(server).status == 200, "there was none yet: its time runs from the job's start"
    job.later(2)
    assert ready(server).status == 503
    assert ready(server).error == "The last completed checkpoint of a job is 61 s old, more than 60 s."
    job.checkpoint(1)
    assert ready(server).status == 200
    job.later(61)
    job.checkpoint(2, failure="Checkpoint was declined.")
    assert ready(server).status == 503
    job.checkpoint(3)
    assert ready(server).status == 200


@pytest.mark.parametrize(("max_age_ms", "interval"), [(None, "10 s"), (60_000, None)])
def test_without_the_setting_or_without_checkpoints_any_age_will_do(server, max_age_ms, interval):
    settings = {} if interval is None else {"execution.checkpointing.interval": interval}
    job = add(server, max_age_ms, **settings).run()
    job.later(10_000)
    assert ready(server).status == 200


def test_nothing_but_the_state_is_told(server):
    job = add(server).run()
    job.fail()
    told = ready(server).content.decode()
    for secret in ("orders", job.job_id, "KeyError", "numbers", TOKEN):
        assert secret not in told


def test_a_history_is_ready(tmp_path: Path):
    with HistoryServer(str(tmp_path), Configuration.from_dict({"rest.port": "0"})) as history:
        assert RestClient(history.server.url).get("/ready") == {"status": "ready"}


def test_the_setting_reaches_the_server(tmp_path):
    from rekindle.monitor.monitored_job import MonitoredJob
    from rekindle.web.attach import _running

    job, served = RecordedJob(), serve(tmp_path)
    served.server.close()
    ages = []
    for settings in ({}, {"rekindle.rest.ready.max-checkpoint-age": "2 min"}):
        configuration = Configuration.from_dict(settings)
        ages.append(_running(MonitoredJob(job.recorder, FakeHandle(), configuration, {})).max_checkpoint_age_ms)
    assert ages == [None, 120_000]
