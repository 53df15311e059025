"""Metrics under Flink's names, for Prometheus and in answers."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rekindle.common import Configuration
from rekindle.common.job_status import JobStatus
from rekindle.errors import ConfigurationError
from rekindle.metrics import MetricKind
from rekindle.web.metric_answers import aggregated, metrics
from rekindle.web.prometheus_text import prometheus_text
from rekindle.web.rest_settings import ReporterOptions, prometheus_ports
from tests.support.recorded_jobs import JOB_ID, RecordedJob
from tests.support.rest_client import RestClient
from tests.unit.web.conftest import TOKEN, Served

FACTORY = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"


def job_with_metrics() -> RecordedJob:
    job = RecordedJob().run()
    job.later(2)
    job.epoch(records=10)
    job.checkpoint(1)
    job.metric("orders.seen", MetricKind.COUNTER, 7)
    job.metric("rate", MetricKind.METER, {"count": 7, "rate": 3.5})
    job.metric("length", MetricKind.DISTRIBUTION, {"count": 2, "sum": 6, "min": 1, "max": 5, "mean": 3.0})
    job.metric("broken", MetricKind.GAUGE, "ValueError: no")
    return job


def values(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """What Prometheus reads."""
    families = text_string_to_metric_families(text)
    return {family.name: [(sample.labels, sample.value) for sample in family.samples] for family in families}


def test_names_and_labels_are_those_of_flinks_reporter():
    found = values(prometheus_text([job_with_metrics().recorder.view()]))
    samples = found["flink_taskmanager_job_task_operator_numRecordsIn"]
    (labels, value) = next(each for each in samples if each[0]["operator_name"] == "count")
    assert value == 10
    assert labels.keys() == {
        *("job_id", "job_name", "task_id", "task_name", "task_attempt_id", "task_attempt_num", "subtask_index"),
        *("operator_id", "operator_name", "host", "tm_id"),
    }
    assert (labels["job_id"], labels["job_name"], labels["subtask_index"]) == (JOB_ID, "orders", "0")
    names = {
        *("flink_jobmanager_job_numRestarts", "flink_jobmanager_job_lastCheckpointDuration"),
        *("flink_jobmanager_job_lastCheckpointSize", "flink_jobmanager_numRunningJobs"),
        *("flink_taskmanager_job_task_busyTimeMsPerSecond", "flink_taskmanager_job_task_numRecordsInPerSecond"),
        *("flink_taskmanager_job_task_currentInputWatermark", "flink_taskmanager_Status_JVM_Memory_Heap_Used"),
        "flink_taskmanager_job_task_backPressuredTimeMsPerSecond",
    }
    assert names <= found.keys()
    assert found["flink_jobmanager_job_lastCheckpointDuration"][0][1] == 30


def test_the_users_own_metrics_are_there_and_text_is_left_out():
    found = values(prometheus_text([job_with_metrics().recorder.view()]))
    prefix = "flink_taskmanager_job_task_operator_"
    assert found[f"{prefix}orders_seen"][0][1] == 7
    assert found[f"{prefix}rate"][0][1] == 3.5
    assert found[f"{prefix}length_mean"][0][1] == 3
    assert f"{prefix}broken" not in found


def test_the_head_of_a_metric_is_flinks():
    text = prometheus_text([job_with_metrics().recorder.view()])
    assert "# HELP flink_jobmanager_job_numRestarts numRestarts (scope: jobmanager_job)" in text
    assert "# TYPE flink_jobmanager_job_numRestarts gauge" in text


def test_label_values_are_filtered_unless_the_setting_says_no():
    view = job_with_metrics().recorder.view()
    task = "flink_taskmanager_job_task_numRecordsIn"
    assert values(prometheus_text([view]))[task][0][0]["task_name"] == "Source:_numbers"
    plain = values(prometheus_text([view], ReporterOptions(filter_label_values=False, excluded=frozenset({"host"}))))
    labels = plain[task][0][0]
    assert labels["task_name"] == "Source: numbers"
    assert "host" not in labels


def test_a_job_that_is_over_has_no_metrics():
    job = job_with_metrics()
    job.end(JobStatus.FINISHED)
    text = prometheus_text([job.recorder.view()])
    assert JOB_ID not in text
    assert values(text)["flink_jobmanager_numRunningJobs"][0][1] == 0


def test_the_port_of_a_reporter_answers_every_path_and_asks_for_the_token(guarded: Served):
    settings = {"metrics.reporter.prom.factory.class": FACTORY, "metrics.reporter.prom.port": "0"}
    (reporter,) = prometheus_ports(Configuration.from_dict(settings))
    port = guarded.server.serve_metrics(reporter)
    client = RestClient(f"http://127.0.0.1:{port}")
    assert client.ask("GET", "/metrics").status == 401
    for path in ("/", "/metrics"):
        answer = client.ask("GET", path, authorization=f"Bearer {TOKEN}")
        assert (answer.status, b"flink_jobmanager_job_numRestarts{" in answer.content) == (200, True)
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_settings_of_reporters(caplog):
    configuration = Configuration.from_dict(
        {
            "metrics.reporter.prom.factory.class": FACTORY,
            "metrics.reporter.prom.port": "9250-9252",
            "metrics.reporter.prom.filterLabelValueCharacters": "false",
            "metrics.reporter.prom.scope.variables.excludes": "host;tm_id",
            "metrics.reporter.log.factory.class": "org.apache.flink.metrics.slf4j.Slf4jReporterFactory",
        }
    )
    (reporter,) = prometheus_ports(configuration)
    assert reporter.ports == (9250, 9251, 9252)
    assert reporter.options == ReporterOptions(False, frozenset({"host", "tm_id"}))
    assert "'log' is ignored: Rekindle has no org.apache.flink.metrics.slf4j.Slf4jReporterFactory." in caplog.text
    configuration.set_string("metrics.reporters", "other")
    assert prometheus_ports(configuration) == []
    configuration.set_string("metrics.reporters", "prom")
    configuration.set_string("metrics.reporter.prom.port", "no port")
    with pytest.raises(ConfigurationError, match=r"metrics\.reporter\.prom\.port"):
        prometheus_ports(configuration)


def test_values_are_text_and_aggregates_numbers():
    sources = [{"a": 1, "b": True, "c": "n/a"}, {"a": 3.5, "b": False}]
    assert metrics(sources[0], ["a", "b", "c", "unknown"]) == [
        {"id": "a", "value": "1"},
        {"id": "b", "value": "true"},
        {"id": "c", "value": "n/a"},
    ]
    assert aggregated(sources, ["a", "c"], ["min", "max", "avg", "sum"]) == [
        {"id": "a", "min": 1.0, "max": 3.5, "avg": 2.25, "sum": 4.5}
    ]
    assert aggregated(sources, None) == [{"id": "a"}, {"id": "b"}, {"id": "c"}]


def test_subtasks_and_aggregations_are_chosen_by_the_request(served: Served):
    vertices = served.client.get(served.path)["vertices"]
    count = next(each["id"] for each in vertices if each["name"] == "count")
    path = f"{served.path}/vertices/{count}/subtasks/metrics?get=numRecordsIn"
    assert served.client.get(f"{path}&subtasks=0&agg=sum") == [{"id": "numRecordsIn", "sum": 10.0}]
    assert served.client.get(f"{path}&subtasks=0-1&agg=sum,max") == [{"id": "numRecordsIn", "sum": 20.0, "max": 10.0}]
    bad = served.client.ask("GET", f"{path}&subtasks=first")
    assert (bad.status, re.search(r"query parameter \(subtasks\)", bad.error) is not None) == (400, True)
