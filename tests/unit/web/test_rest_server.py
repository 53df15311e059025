"""The server itself: when it wakes, whom it refuses, what a slow or large request does, and how events come."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest

from rekindle.common import Configuration
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import JobOver, StatusEntered
from rekindle.errors import ConfigurationError
from rekindle.web import application, listener
from rekindle.web.endpoints import ENDPOINTS
from rekindle.web.event_stream import MOST_CLIENTS
from rekindle.web.probe_answers import PROBES
from rekindle.web.rest_server import RestServer
from rekindle.web.rest_settings import RestSettings
from rekindle.web.served_jobs import RunningJob, ServedJobs
from tests.support.recorded_jobs import FakeHandle, RecordedJob, plan_of_three_tasks
from tests.support.waiting import wait_until
from tests.unit.web.conftest import TOKEN, Served, serve

DEADLINE_S = 30
OTHER_PATHS = ("/", "/v1/events", "/metrics", "/v1/openapi.json", "/v1/nope", "/index.html", "/page/main.js")


def settings(**values: str) -> RestSettings:
    return RestSettings.of(Configuration.from_dict(values))


# -- start ------------------------------------------------------------------------------------------------------------


def test_a_server_sleeps_until_the_first_client_comes(tmp_path):
    served = serve(tmp_path)
    assert not served.server.is_awake
    assert served.client.get("/overview")["jobs-running"] == 1
    assert served.server.is_awake
    served.server.close()
    with pytest.raises(ConnectionError):
        served.client.get("/overview")


def test_a_job_that_nobody_looks_at_does_not_import_the_servers_packages():
    program = """
import sys
from rekindle.common import Configuration
from rekindle.web.attach import server_for
from rekindle.web.rest_settings import RestSettings
server = server_for(RestSettings.of(Configuration.from_dict({"rest.port": "0"})))
assert server.port > 0
print(sorted(sys.modules.keys() & {"starlette", "uvicorn", "prometheus_client", "asyncio", "opentelemetry"}))
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)
    assert set(json.loads(answer.stdout.replace("'", '"'))) <= {"asyncio"}


def test_drivers_on_one_machine_take_the_next_free_port():
    servers = [RestServer(settings()) for _ in range(2)]
    ports = [server.port for server in servers]
    for server in servers:
        server.close()
    assert len(set(ports)) == 2
    assert all(8081 <= port < 8181 for port in ports)


def test_of_chosen_ports_the_first_free_one_is_taken_and_one_has_to_be_free():
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as also:
        used, other = taken.getsockname()[1], also.getsockname()[1]
        also.close()
        server = RestServer(settings(**{"rest.bind-port": f"{used},{other}"}))
        assert server.port == other
        server.close()
        with pytest.raises(ConfigurationError, match=rf"cannot listen on 127.0.0.1, port {used} .*rest\.bind-port"):
            RestServer(settings(**{"rest.port": str(used)}))


@pytest.mark.parametrize("text", ["", "8081-", "a", "8090-8081", "70000", "1,,2"])
def test_a_list_of_ports_that_is_none_is_refused(text):
    with pytest.raises(ConfigurationError, match=r"rest\.bind-port"):
        settings(**{"rest.bind-port": text or ","})


def test_a_token_is_required_where_others_can_reach_the_server():
    assert settings().token is None
    assert settings(**{"rest.bind-address": "127.0.0.1"}).token is None
    assert settings(**{"rest.bind-address": "0.0.0.0"}).token == "auto"
    server = RestServer(
        settings(**{"rest.bind-address": "0.0.0.0", "rest.port": "0", "rest.address": "driver.example"})
    )
    assert server.link == f"http://driver.example:{server.port}/?token={server.token}"
    assert len(server.token or "") >= 32
    server.close()
    with pytest.raises(ConfigurationError, match="at least 16"):
        settings(**{"rekindle.rest.token": "short"})


# -- access -----------------------------------------------------------------------------------------------------------


GUARDED = [endpoint for endpoint in ENDPOINTS if endpoint.path not in PROBES]


@pytest.mark.parametrize("endpoint", GUARDED, ids=lambda each: f"{each.method} {each.path}")
def test_nothing_is_answered_without_the_token(guarded: Served, endpoint):
    path = endpoint.path.format_map(Ids())
    for version in ("", "/v1"):
        answer = guarded.client.ask(endpoint.method, version + path)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert guarded.handle.asked == []


class Ids(dict[str, str]):
    """A value for each part of a path."""

    def __missing__(self, name: str) -> str:
        return "0" * 32


@pytest.mark.parametrize("path", OTHER_PATHS)
def test_nothing_else_is_answered_without_the_token(guarded: Served, path):
    assert guarded.client.ask("GET", path).status == 401


def test_the_printed_link_sets_the_cookie_and_leads_to_the_page_without_the_token(guarded: Served):
    opened = guarded.client.ask("GET", f"/?token={TOKEN}&job=a%22b")
    cookie = opened.headers["set-cookie"]
    assert (opened.status, cookie.partition("; ")[2]) == (200, "HttpOnly; SameSite=Strict; Path=/")
    assert b"url=/?job=a%22b" in opened.content
    assert TOKEN.encode() not in opened.content
    with_cookie = guarded.client.ask("GET", "/overview", cookie=cookie.partition(";")[0])
    assert with_cookie.status == 200
    assert guarded.client.ask("GET", "/overview", authorization=f"Bearer {TOKEN}").status == 200


def test_a_foreign_page_cannot_press_a_button(served: Served):
    before = list(served.handle.asked)
    for path, method in (
        (served.path, "PATCH"),
        (f"{served.path}/stop", "POST"),
        (f"{served.path}/savepoints", "POST"),
    ):
        foreign = served.client.ask(method, path, "{}", origin="http://evil.example")
        assert (foreign.status, foreign.error) == (
            403,
            "Requests of other sites are refused: the Origin is not this server.",
        )
        rebound = served.client.ask(method, path, "{}", host="evil.example")
        assert rebound.status == 400
    assert served.handle.asked == before


def test_no_answer_is_kept_framed_or_shared_with_other_sites(served: Served):
    headers = served.client.ask("GET", "/overview").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


# -- paths ------------------------------------------------------------------------------------------------------------


def slot_id(served: Served) -> str:
    return served.client.get("/taskmanagers")["taskmanagers"][0]["id"]


@pytest.mark.parametrize("name", ["..%2f..%2f..%2fetc%2fpasswd", "%2e%2e", "/etc/passwd", "taskmanager.log%00", ".."])
def test_no_file_but_a_slots_lines_can_be_read(served: Served, name):
    answer = served.client.ask("GET", f"/taskmanagers/{slot_id(served)}/logs/{name}")
    assert answer.status == 404
    assert b"root:" not in answer.content


def test_a_slots_lines(served: Served):
    slot = slot_id(served)
    logs = served.client.get(f"/taskmanagers/{slot}/logs")["logs"]
    assert [each["name"] for each in logs] == ["taskmanager.log", "taskmanager.out"]
    assert served.client.ask("GET", f"/taskmanagers/{slot}/log").status == 200


@pytest.mark.parametrize(
    "directory",
    [
        "/etc",
        "{root}/checkpoints/../../elsewhere",
        "{root}/checkpoints-2",
        "file:///etc",
        "s3://bucket/x",
        "",
        "\0",
        "file:{root}/checkpoints/a?/../../elsewhere",
        "file://{root}/checkpoints/a#/../../elsewhere",
        "file:{root}/checkpoints/%2e%2e/elsewhere",
        "file:{root}/checkpoints%2f..%2felsewhere",
        "file:{root}/checkpoints/%00",
        "file:checkpoints",
        "FILE:/etc",
        "file://elsewhere{root}/checkpoints",
    ],
)
@pytest.mark.parametrize(("path", "name"), [("savepoints", "target-directory"), ("stop", "targetDirectory")])
def test_a_request_cannot_write_outside_the_configured_directories(served: Served, path, name, directory):
    before = list(served.handle.asked)
    body = json.dumps({name: directory.format(root=served.directory)})
    answer = served.client.ask("POST", f"{served.path}/{path}", body)
    assert (answer.status, "outside the directories" in answer.error) == (400, True)
    assert served.handle.asked == before


def test_a_link_out_of_an_allowed_directory_is_outside(served: Served):
    (served.directory / "savepoints").mkdir(exist_ok=True)
    (served.directory / "savepoints" / "out").symlink_to("/etc")
    for form in ("{}/savepoints/out/sp", "file:{}/savepoints/out", "file://{}/savepoints/%6fut/sp"):
        body = json.dumps({"target-directory": form.format(served.directory)})
        assert served.client.ask("POST", f"{served.path}/savepoints", body).status == 400


@pytest.mark.parametrize("form", ["file://{}/savepoints/daily", "file:{}/savepoints/daily", "file:{}/savepoints/a?b"])
def test_a_request_may_write_below_the_configured_directories(served: Served, form):
    directory = form.format(served.directory)
    body = json.dumps({"targetDirectory": directory, "drain": True, "formatType": "NATIVE"})
    assert served.client.ask("POST", f"{served.path}/stop", body).status == 202
    assert served.handle.asked[-1] == ("stop", True, directory, "NATIVE")
    body = json.dumps({"target-directory": directory, "cancel-job": True})
    assert served.client.ask("POST", f"{served.path}/savepoints", body).status == 202
    assert served.handle.asked[-1] == ("cancel with savepoint", directory, "CANONICAL")


@pytest.mark.parametrize(
    "body",
    ['{"triggerId": "not hex"}', '{"triggerId": 7}', "[]", '"text"', '{"formatType": "OTHER"}', "\xff", '{"drain": 1}'],
)
def test_a_body_of_another_form_is_refused(served: Served, body):
    before = list(served.handle.asked)
    answer = served.client.ask("POST", f"{served.path}/stop", body.encode("latin-1"))
    assert (answer.status, answer.error) == (
        400,
        "Request did not match expected format StopWithSavepointRequestBody.",
    )
    assert served.handle.asked == before


def test_the_same_request_id_is_one_operation(served: Served):
    body = json.dumps({"checkpointType": "FULL", "triggerId": "AB" * 16})
    before = len(served.handle.asked)
    for _ in range(2):
        assert served.client.ask("POST", f"{served.path}/checkpoints", body).body == {"request-id": "ab" * 16}
    assert served.handle.asked[before:] == [("checkpoint", True)]


def test_cancelling_can_be_switched_off(tmp_path):
    served = serve(tmp_path, **{"web.cancel.enable": "false"})
    for method, path in (("PATCH", served.path), ("POST", f"{served.path}/stop")):
        assert served.client.ask(method, path, "{}").status == 403
    assert served.client.get("/config")["features"]["web-cancel"] is False
    assert served.handle.asked == []
    served.server.close()


# -- slow and large ---------------------------------------------------------------------------------------------------


def test_slow_clients_hold_nobody(served: Served):
    """Some send half a request and stop, some never read their answer: the next one is answered."""
    host, port = "127.0.0.1", served.server.port
    stuck = [socket.create_connection((host, port)) for _ in range(20)]
    for each in stuck[:10]:
        each.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    for each in stuck[10:]:
        each.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert served.client.get("/overview")["jobs-running"] == 1
    for each in stuck:
        each.close()


def test_connections_on_which_nothing_comes_are_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "_IDLE_S", 0.2)
    served = serve(tmp_path)
    silent = socket.create_connection(("127.0.0.1", served.server.port), timeout=DEADLINE_S)
    half = socket.create_connection(("127.0.0.1", served.server.port), timeout=DEADLINE_S)
    half.sendall(b"GET /v1/over")
    page = Listening(served.server.port, "/v1/events")
    assert silent.recv(1) == b""
    assert half.recv(1) == b""
    wait_until(lambda: page.events("job"), "a page that listens is not silent", DEADLINE_S)
    page.close()
    served.server.close()


def test_clients_that_do_not_take_their_answers_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "_IDLE_S", 0.2)
    served = serve(tmp_path)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(DEADLINE_S)
        deaf.connect(("127.0.0.1", served.server.port))
        deaf.sendall(b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)

        def is_left() -> bool:
            try:
                deaf.send(b"G")
            except ConnectionError:
                return True
            assert served.client.get("/overview")["jobs-running"] == 1
            return False

        wait_until(is_left, "the server to drop what the client does not take", DEADLINE_S)
    served.server.close()


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(application, "_BODY_DEADLINE_S", 0.1)
    served = serve(tmp_path)
    with socket.create_connection(("127.0.0.1", served.server.port), timeout=DEADLINE_S) as slow:
        head = f"POST {served.path}/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{"
        slow.sendall(head.encode())
        assert slow.recv(65536).startswith(b"HTTP/1.1 408 ")
    assert served.handle.asked == []
    served.server.close()


def test_the_number_of_connections_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "_MOST_CONNECTIONS", 5)
    served = serve(tmp_path)
    pages = [Listening(served.server.port, "/v1/events") for _ in range(4)]
    wait_until(lambda: all("event: jobs" in page.text for page in pages), "every page to hear", DEADLINE_S)
    assert served.client.ask("GET", "/overview").status == 503
    for page in pages:
        page.close()
    served.server.close()


def test_a_large_body_is_refused(served: Served):
    answer = served.client.ask("POST", f"{served.path}/savepoints", b" " * (65 * 1024))
    assert (answer.status, answer.error) == (413, "The body of a request has at most 65536 bytes.")


# -- events -----------------------------------------------------------------------------------------------------------


class Listening:
    """Reads events on a thread."""

    def __init__(self, port: int, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.text = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while data := self._socket.recv(65536):
                self.text += data.decode("utf-8", "replace")
        except OSError:
            return

    def events(self, name: str) -> list[Any]:
        found = [block for block in self.text.split("\n\n") if block.rpartition("event: ")[2].startswith(name + "\n")]
        lines = [line for block in found for line in block.splitlines() if line.startswith("data: ")]
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.endswith("}")]

    def close(self) -> None:
        self._socket.close()


def test_a_page_hears_of_changes(tmp_path):
    served = serve(tmp_path)
    page = Listening(served.server.port, "/v1/events")
    (first,) = wait_until(lambda: page.events("job"), "the first event", DEADLINE_S)
    assert (first["state"], first["restarts"], len(first["epochs"])) == ("RUNNING", 1, 1)
    assert page.events("jobs")[0]["jobs"][0]["name"] == "orders"
    served.job.later(1)
    served.job.epoch(records=5)
    wait_until(lambda: page.events("job")[-1]["records-in"] == 30, "the next epoch", DEADLINE_S)
    assert "text/event-stream" in page.text
    page.close()
    served.server.close()


def test_the_number_of_listeners_is_bounded(tmp_path):
    served = serve(tmp_path)
    pages = [Listening(served.server.port, "/v1/events") for _ in range(MOST_CLIENTS)]
    wait_until(lambda: all("event: jobs" in page.text for page in pages), "every page to hear", DEADLINE_S)
    assert served.client.ask("GET", "/v1/events").status == 503
    assert served.client.ask("GET", "/v1/events?job=unknown").status == 404
    for page in pages:
        page.close()
    served.server.close()


# -- jobs that end ----------------------------------------------------------------------------------------------------


def test_a_job_that_is_over_is_still_shown_and_its_handle_forgotten(tmp_path):
    served = serve(tmp_path)
    observer = served.server.jobs.add(served.server.jobs.running(str(served.handle.job_id)))  # type: ignore[arg-type]
    served.job.recorder.on_event(StatusEntered(JobStatus.FINISHED))
    observer.on_event(JobOver())
    assert served.server.jobs.running(str(served.handle.job_id)) is None
    assert served.client.get(f"{served.path}/status") == {"status": "FINISHED"}
    refused = served.client.ask("PATCH", served.path)
    assert refused.status == 409
    assert served.client.get("/overview")["jobs-finished"] == 1
    served.server.close()


def test_of_many_jobs_that_are_over_the_newest_are_kept():
    jobs, plan = ServedJobs(), plan_of_three_tasks()
    for number in range(25):
        job = RecordedJob(plan, f"{number:032x}").run()
        observer = jobs.add(RunningJob(job.recorder, FakeHandle(job.job_id)))
        job.end(JobStatus.FINISHED)
        observer.on_event(JobOver())
    assert [int(view.job_id, 16) for view in jobs.views()] == list(range(5, 25))
