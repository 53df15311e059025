"""The history of runs gives the answers that the driver gave."""

from __future__ import annotations

import json

from rekindle.checkpoint.store.local import LocalStore
from rekindle.common import Configuration
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import JobOver, StatusEntered
from rekindle.monitor.job_history import HistoryWriter
from rekindle.web.endpoints import ENDPOINTS
from rekindle.web.history_server import HistoryServer
from tests.support.recorded_jobs import RecordedJob
from tests.support.rest_client import RestClient
from tests.unit.web.conftest import serve


def test_the_same_answers_as_from_the_driver(tmp_path):
    served = serve(tmp_path)
    served.job.recorder.on_event(StatusEntered(JobStatus.FAILED))
    HistoryWriter(served.job.recorder, LocalStore(tmp_path), "orders", 20).on_event(JobOver())
    vertex = served.client.get(served.path)["vertices"][1]["id"]
    ids = {"jobid": served.handle.job_id, "vertexid": vertex, "checkpointid": 2, "subtaskindex": 1}
    with HistoryServer(str(tmp_path), Configuration.from_dict({"rest.port": "0"})) as history:
        client = RestClient(history.server.url)
        compared = 0
        for endpoint in ENDPOINTS:
            if endpoint.method != "GET" or "{jobid}" not in endpoint.path or "{triggerid}" in endpoint.path:
                continue
            path = endpoint.path.format(**ids)
            assert client.ask("GET", path).body == served.client.ask("GET", path).body, path
            compared += 1
        assert compared > 25
        assert client.get("/config")["features"] == {
            "web-submit": False,
            "web-cancel": False,
            "web-rescale": False,
            "web-history": True,
        }
        assert client.get("/taskmanagers") == {"taskmanagers": []}
        assert client.ask("PATCH", f"/jobs/{served.handle.job_id}").status == 409
        body = json.dumps({"targetDirectory": "/etc"})
        started = client.ask("POST", f"/jobs/{served.handle.job_id}/stop", body).body["request-id"]
        outcome = client.get(f"/jobs/{served.handle.job_id}/savepoints/{started}")["operation"]
        assert "does not run any more" in outcome["failure-cause"]["stack-trace"]
    served.server.close()


def test_a_run_that_comes_later_is_found(tmp_path):
    with HistoryServer(str(tmp_path), Configuration.from_dict({"rest.port": "0"})) as history:
        client = RestClient(history.server.url)
        assert client.get("/jobs") == {"jobs": []}
        job = RecordedJob().run()
        job.recorder.on_event(StatusEntered(JobStatus.FINISHED))
        HistoryWriter(job.recorder, LocalStore(tmp_path), "orders", 20).on_event(JobOver())
        history.look()
        assert [each["status"] for each in client.get("/jobs")["jobs"]] == ["FINISHED"]
