"""Whether a job is shown: by the settings, and by what is installed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator

import pytest

from rekindle.common import Configuration
from rekindle.errors import ConfigurationError
from rekindle.monitor.monitored_job import Attached, MonitoredJob, attach_all
from rekindle.web import attach
from rekindle.web.runtime_directory import running_drivers
from tests.support.recorded_jobs import JOB_ID, FakeHandle, RecordedJob
from tests.support.rest_client import RestClient
from tests.unit.web.conftest import serve


@pytest.fixture(autouse=True)
def own_servers(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[None]:
    """Servers of the test's own, noted in a directory of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(attach, "_servers", {})
    monkeypatch.setattr(attach, "_reporters", {})
    monkeypatch.setattr(attach, "_said_missing", type(attach._said_missing)())
    yield
    for server in attach._servers.values():
        server.close()


def shown(**settings: str) -> Attached:
    configuration = Configuration.from_dict({"rest.port": "0", **settings})
    return attach.attach(MonitoredJob(RecordedJob().recorder, FakeHandle(), configuration))


def test_the_launcher_finds_the_web_by_its_entry_point():
    configuration = Configuration.from_dict({"rest.port": "0"})
    (attached,) = attach_all(MonitoredJob(RecordedJob().recorder, FakeHandle(), configuration))
    assert attached.link is not None
    assert RestClient(attached.link).get("/jobs")["jobs"] == [{"id": JOB_ID, "status": "CREATED"}]


def test_jobs_of_one_program_share_a_server():
    first, second = shown(), shown()
    assert first.link == second.link
    assert len(attach._servers) == 1
    assert shown(**{"rekindle.rest.token": "another-token-here"}).link != first.link


def test_it_can_be_switched_off():
    assert shown(**{"rekindle.rest.enabled": "false"}).link is None
    assert attach._servers == {}


def test_without_the_extra_a_job_runs_and_one_line_says_what_is_missing(monkeypatch, caplog):
    caplog.set_level("INFO", "rekindle.web")
    monkeypatch.setattr(attach, "find_spec", lambda name: None)
    assert shown().link is None
    assert shown().link is None
    assert [record.getMessage() for record in caplog.records] == [
        "The REST API and its page need pip install 'rekindle[web]'; the job runs without."
    ]
    with pytest.raises(ConfigurationError, match=r"pip install 'rekindle\[web\]': install it, or set rekindle\.rest"):
        shown(**{"rekindle.rest.enabled": "true"})


def test_metrics_have_a_port_of_their_own_once_per_process():
    settings = {
        "metrics.reporter.prom.factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        "metrics.reporter.prom.port": "0",
    }
    shown(**settings)
    shown(**settings)
    (port,) = attach._reporters.values()
    assert RestClient(f"http://127.0.0.1:{port}").ask("GET", "/metrics").status == 200


def test_a_command_of_the_same_user_finds_the_driver(tmp_path):
    link = shown(**{"rekindle.rest.token": "a-token-of-sixteen"}).link
    (driver,) = running_drivers()
    assert link == f"{driver.url}?token={driver.token}"
    (note,) = (tmp_path / "rekindle").iterdir()
    assert (note.stat().st_mode & 0o777, note.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    note.rename(note.with_name("1-1.json"))
    (note.parent / "2-2.json").write_text('{"pid": 4194305, "url": "http://gone"}')  # beyond the highest process id
    (note.parent / "3-3.json").write_text("{")
    assert running_drivers() == [driver]
    assert not (note.parent / "2-2.json").exists()
    note.parent.chmod(0o777)
    assert running_drivers() == [], "others could write notes there"


def test_before_a_driver_ends_who_stopped_its_job_hears_where_the_savepoint_is(tmp_path):
    served = serve(tmp_path)
    body = json.dumps({"targetDirectory": f"{tmp_path}/savepoints"})
    request = served.client.ask("POST", f"{served.path}/stop", body).body["request-id"]
    served.handle.outcome.set_result("file:///savepoint-1")
    ending = threading.Thread(target=attach._close, args=(served.server, os.getpid()))
    ending.start()
    ending.join(0.5)
    assert ending.is_alive(), "it has not waited"
    answer = served.client.get(f"{served.path}/savepoints/{request}")
    assert answer["operation"] == {"location": "file:///savepoint-1"}
    ending.join(4)
    assert not ending.is_alive(), "it waits although all is told"


def test_a_driver_whom_nobody_has_asked_ends_at_once(tmp_path):
    served = serve(tmp_path)
    ending = threading.Thread(target=attach._close, args=(served.server, os.getpid()))
    ending.start()
    ending.join(4)
    assert not ending.is_alive()
    with pytest.raises(ConnectionError):
        served.client.get("/overview")
