"""Every answer has the keys and types of a real Flink's (tests/data/flink_rest), field by field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.web.conftest import DEADLINE_S, Shown
from tests.support.json_shapes import differences
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(300)  # four jobs start at once for the first test
GOLDEN = Path(__file__).resolve().parents[2] / "data" / "flink_rest"
#: Files without a meaning here, with the reason.
LEFT_OUT = {
    "rescales_overview": "Flink's adaptive scheduler: a running job is not rescaled here",
    "resreq": "the same; Flink itself answers 500",
}
#: Answers that differ on purpose, with the reason.
EXPECTED: dict[str, dict[str, str]] = {
    "exceptions0": {
        ".exceptionHistory.truncated": "",
    },
}
#: Metrics of a subtask that Flink has and Rekindle has not: parts of Flink that do not exist here.
NO_METRICS = re.compile(
    r"Shuffle\.Netty|mailbox|numBytes|numBuffers|changelog|numFiredTimers|max(Hard|Soft)BackPressureTimeMs"
    r"|numRecordsSend|numBytesSend"
)


def golden(name: str) -> dict[str, Any]:
    recorded = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    if name == "2_done_cancel-me_checkpoints":
        return with_failed_checkpoint(recorded)
    return with_pending_checkpoint(recorded) if name == "checkpoints" else recorded


def with_failed_checkpoint(recorded: dict[str, Any]) -> dict[str, Any]:
    """Here the cancellation may abort a checkpoint. Another answer of Flink has a failed one in its history."""
    other = json.loads((GOLDEN / "checkpoints.json").read_text(encoding="utf-8"))["body"]["history"]
    recorded["body"]["history"].append(next(each for each in other if each["className"] == "failed"))
    return recorded


def with_pending_checkpoint(recorded: dict[str, Any]) -> dict[str, Any]:
    """No checkpoint was in progress when Flink's answer was recorded; one may be here.

    Flink's `PendingCheckpointStatistics` has what a completed checkpoint has, without its path and `discarded`.
    """
    history = recorded["body"]["history"]
    completed = next(each for each in history if each["className"] == "completed")
    only_completed = ("external_path", "discarded")
    history.append({key: value for key, value in completed.items() if key not in only_completed})
    return recorded


def compared(name: str, shown: Shown, path: str) -> Any:
    """Ask for a path, and compare the answer with the file of this name. Returns the answer's body."""
    expected = golden(name)
    answer = shown.client.ask(expected["method"], path, expected["request_body"])
    assert answer.status == expected["status"], (path, answer.content)
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    assert list(differences(expected["body"], answer.body)) == []
    return answer.body


GETS = {
    "overview": "/v1/overview",
    "unversioned_overview": "/overview",
    "config": "/v1/config",
    "jars": "/v1/jars",
    "jobs": "/v1/jobs",
    "jobs_overview": "/v1/jobs/overview",
    "2_jobs_overview_end": "/v1/jobs/overview",
    "jobs_metrics_agg": "/v1/jobs/metrics?get=numberOfCompletedCheckpoints",
    "applications_overview": "/v1/applications/overview",
    "application": "/v1/applications/{job}",
    "application_exceptions": "/v1/applications/{job}/exceptions",
    "job": "/v1/jobs/{job}",
    "2_finished_job": "/v1/jobs/{finished}",
    "2_done_no-cp": "/v1/jobs/{finished}",
    "2_done_no-cp_checkpoints": "/v1/jobs/{finished}/checkpoints",
    "2_done_no-cp_exceptions": "/v1/jobs/{finished}/exceptions",
    "2_done_fail-me": "/v1/jobs/{failed}",
    "2_done_fail-me_checkpoints": "/v1/jobs/{failed}/checkpoints",
    "2_exec_result_fail": "/v1/jobs/{failed}/execution-result",
    "2_done_cancel-me": "/v1/jobs/{cancelled}",
    "2_done_cancel-me_checkpoints": "/v1/jobs/{cancelled}/checkpoints",
    "2_done_cancel-me_exceptions": "/v1/jobs/{cancelled}/exceptions",
    "2_exec_result": "/v1/jobs/{cancelled}/execution-result",
    "job_plan": "/v1/jobs/{job}/plan",
    "job_config": "/v1/jobs/{job}/config",
    "job_status": "/v1/jobs/{job}/status",
    "job_accumulators": "/v1/jobs/{job}/accumulators",
    "job_metrics_list": "/v1/jobs/{job}/metrics",
    "job_metrics_get": "/v1/jobs/{job}/metrics?get=lastCheckpointSize,numRestarts,lastCheckpointExternalPath",
    "checkpoints": "/v1/jobs/{job}/checkpoints",
    "cp_config": "/v1/jobs/{job}/checkpoints/config",
    "exceptions0": "/v1/jobs/{job}/exceptions?maxExceptions=10",
    "taskmanagers": "/v1/taskmanagers",
    "taskmanager": "/v1/taskmanagers/{slot}",
    "taskmanager_metrics": "/v1/taskmanagers/{slot}/metrics?get=Status.JVM.Memory.Heap.Used",
    "tm_logs": "/v1/taskmanagers/{slot}/logs",
    "jm_metrics": "/v1/jobmanager/metrics",
    "v_vertex": "/v1/jobs/{job}/vertices/{vertex}",
    "v_accumulators": "/v1/jobs/{job}/vertices/{vertex}/accumulators",
    "v_backpressure": "/v1/jobs/{job}/vertices/{vertex}/backpressure",
    "v_flamegraph": "/v1/jobs/{job}/vertices/{vertex}/flamegraph?type=on_cpu",
    "v_subtasks_accumulators": "/v1/jobs/{job}/vertices/{vertex}/subtasks/accumulators",
    "v_subtasktimes": "/v1/jobs/{job}/vertices/{vertex}/subtasktimes",
    "v_vmetrics": "/v1/jobs/{job}/vertices/{vertex}/metrics",
    "v_vsubmetrics": "/v1/jobs/{job}/vertices/{vertex}/subtasks/metrics?get=busyTimeMsPerSecond,numRecordsInPerSecond",
    "v_vsubmetrics_list": "/v1/jobs/{job}/vertices/{vertex}/subtasks/metrics",
    "v_vtaskmanagers": "/v1/jobs/{job}/vertices/{vertex}/taskmanagers",
    "v_watermarks": "/v1/jobs/{job}/vertices/{vertex}/watermarks",
}
#: Files that tests below compare, each in a story of its own.
IN_STORIES = {
    *("cp_detail_COMPLETED_14", "cp_detail_FAILED_17", "cp_subtasks", "cp_subtasks_failed", "cp_detail_404"),
    *("sp_trigger", "sp_trigger_status0", "sp_trigger_status1", "sp_trigger_bad", "sp_trigger_bad_status0"),
    *("sp_trigger_bad_status1", "sp_404", "sp_badbody", "2_sp_finished", "2_sp_finished_status", "2_nocp_savepoint"),
    *("cp_trigger", "cp_trigger_status0", "cp_trigger_status1", "cp_trigger_empty", "cp_trigger_empty_status0"),
    *("cp_trigger_empty_status1", "2_cancel", "2_cancel_finished", "2_patch_badmode", "2_badjson", "job_400"),
    *("job_404", "url_404", "v2_404", "method", "2_done_fail-me_exceptions"),
    *("2_stop", "2_stop_dup", "2_stop_status", "2_stop_status0", "2_stop_status1", "2_finished_checkpoints"),
    *("2_done_stop-me", "2_done_stop-me_checkpoints", "2_done_stop-me_exceptions"),
}


def test_every_file_is_compared_or_left_out_with_a_reason():
    names = {path.stem for path in GOLDEN.glob("*.json")}
    assert names == GETS.keys() | IN_STORIES | LEFT_OUT.keys()
    assert not GETS.keys() & IN_STORIES


@pytest.mark.parametrize("name", GETS)
def test_an_answer_has_flinks_keys_and_types(shown: Shown, name: str):
    slot = shown.client.get("/v1/taskmanagers")["taskmanagers"][0]["id"]
    ids = {"job": shown.running, "finished": shown.finished, "failed": shown.failed, "cancelled": shown.cancelled}
    path = GETS[name].format(slot=slot, vertex=shown.vertex("check"), **{key: job.job_id for key, job in ids.items()})
    assert compared(name, shown, path) or name in ("jm_metrics",)


def test_the_metrics_of_a_job_are_flinks(shown: Shown):
    flinks = {each["id"] for each in golden("job_metrics_list")["body"]}
    assert {each["id"] for each in shown.client.get(f"{shown.job}/metrics")} == flinks


def test_the_metrics_of_a_subtask_are_flinks_where_there_is_something_to_measure(shown: Shown):
    own = {each["id"] for each in shown.client.get(f"{shown.job}/vertices/{shown.vertex('check')}/metrics")}
    flinks = {each["id"] for each in golden("v_vmetrics")["body"]}
    of_tasks = {name for name in flinks if name.count(".") == 1 and not NO_METRICS.search(name)}
    assert of_tasks <= own
    of_operators = {name.rpartition(".")[2] for name in flinks if "GroupAggregate" in name}
    assert {name for name in of_operators if not NO_METRICS.search(name)} <= {
        name.rpartition(".")[2] for name in own if ".check." in name
    }
    assert {"0.check.orders.seen", "0.check.length_mean", "0.check.rate"} <= own, "the user's own"


# -- checkpoints ------------------------------------------------------------------------------------------------------


def operation(shown: Shown, path: str) -> dict[str, Any]:
    """Wait for the end of an operation; returns its outcome."""
    return wait_until(lambda: shown.client.get(path)["operation"], f"the end of {path}", DEADLINE_S)


def test_details_of_a_checkpoint(shown: Shown):
    checkpoint = shown.client.get(f"{shown.job}/checkpoints")["latest"]["completed"]["id"]
    details = compared("cp_detail_COMPLETED_14", shown, f"{shown.job}/checkpoints/details/{checkpoint}")
    vertex = shown.vertex("check")
    task = compared("cp_subtasks", shown, f"{shown.job}/checkpoints/details/{checkpoint}/subtasks/{vertex}")
    assert details["tasks"][vertex]["state_size"] == task["state_size"]
    assert [each["index"] for each in task["subtasks"]] == [0, 1]
    operators = shown.client.get(f"{shown.job}/checkpoints/details/{checkpoint}/operators")
    assert {each["name"] for task in operators["tasks"] for each in task["subtasks"][0]["operators"]} >= {"check"}
    missing = shown.client.ask("GET", f"{shown.job}/checkpoints/details/99999")
    assert (missing.status, missing.error) == (404, sentence_of("cp_detail_404"))


def sentence_of(name: str) -> str:
    """Flink's error message, without the Java class before it and the stack after it."""
    (message,) = golden(name)["body"]["errors"]
    return re.sub(r"^(org\.apache\S+Exception: )", "", message.partition("\n")[0])


def test_a_savepoint_on_request(shown: Shown):
    body = json.dumps({"target-directory": str(shown.directory / "savepoints" / "a"), "formatType": "CANONICAL"})
    answer = shown.client.ask("POST", f"{shown.job}/savepoints", body)
    assert (answer.status, list(differences(golden("sp_trigger")["body"], answer.body))) == (202, [])
    path = f"{shown.job}/savepoints/{answer.body['request-id']}"
    assert list(differences(golden("sp_trigger_status0")["body"], shown.client.get(path))) == []
    location = operation(shown, path)["location"]
    assert list(differences(golden("sp_trigger_status1")["body"], shown.client.get(path))) == []
    assert (Path(location.removeprefix("file://")) / "_metadata").exists()
    latest = shown.client.get(f"{shown.job}/checkpoints")["latest"]["savepoint"]
    assert (latest["external_path"], latest["savepointFormat"]) == (location, "CANONICAL")
    unknown = shown.client.ask("GET", f"{shown.job}/savepoints/{'0' * 32}")
    assert unknown.status == 404
    assert unknown.error == f"There is no savepoint operation with triggerId={'0' * 32} for job {shown.running.job_id}."
    assert unknown.error == sentence_of("sp_404").replace("397178fbf3c362444225a750eeea4b9b", str(shown.running.job_id))


def test_a_savepoint_that_cannot_be_written(shown: Shown):
    (shown.directory / "taken").write_text("a file where a directory should be")
    body = json.dumps({"target-directory": str(shown.directory / "taken" / "sp"), "cancel-job": False})
    started = shown.client.ask("POST", f"{shown.job}/savepoints", body)
    assert (started.status, list(differences(golden("sp_trigger_bad")["body"], started.body))) == (202, [])
    path = f"{shown.job}/savepoints/{started.body['request-id']}"
    failure = operation(shown, path)["failure-cause"]
    assert list(differences(golden("sp_trigger_bad_status1")["body"], shown.client.get(path))) == []
    assert "taken" in failure["stack-trace"]
    failed = shown.client.get(f"{shown.job}/checkpoints")["latest"]["failed"]
    details = compared("cp_detail_FAILED_17", shown, f"{shown.job}/checkpoints/details/{failed['id']}")
    assert "taken" in details["failure_message"]
    vertex = shown.vertex("check")
    compared("cp_subtasks_failed", shown, f"{shown.job}/checkpoints/details/{failed['id']}/subtasks/{vertex}")
    assert shown.client.get(f"{shown.job}/status") == {"status": "RUNNING"}, "a savepoint that fails is no failure"


def test_a_savepoint_of_a_job_that_is_over(shown: Shown):
    job = f"/v1/jobs/{shown.finished.job_id}"
    directory = json.dumps({"target-directory": str(shown.directory)})
    started = shown.client.ask("POST", f"{job}/savepoints", directory)
    assert (started.status, list(differences(golden("2_sp_finished")["body"], started.body))) == (202, [])
    status = shown.client.get(f"{job}/savepoints/{started.body['request-id']}")
    assert list(differences(golden("2_sp_finished_status")["body"], status)) == []
    without = shown.client.ask("POST", f"{job}/savepoints", '{"cancel-job": true}')
    assert (without.status, without.error) == (400, sentence_of("2_nocp_savepoint"))


def test_a_checkpoint_on_request(shown: Shown):
    for name in ("cp_trigger", "cp_trigger_empty"):
        started = compared(name, shown, f"{shown.job}/checkpoints")
        path = f"{shown.job}/checkpoints/{started['request-id']}"
        assert list(differences(golden(f"{name}_status0")["body"], shown.client.get(path))) == []
        checkpoint = operation(shown, path)["checkpointId"]
        if name == "cp_trigger":  # it asks for a FULL one
            details = shown.client.get(f"{shown.job}/checkpoints/details/{checkpoint}")
            assert details["checkpointed_size"] == details["state_size"] > 0
        assert list(differences(golden(f"{name}_status1")["body"], shown.client.get(path))) == []


def test_a_body_with_unknown_names_is_taken(shown: Shown):
    started = compared("sp_badbody", shown, f"{shown.job}/savepoints")
    assert operation(shown, f"{shown.job}/savepoints/{started['request-id']}")["location"]


# -- errors -----------------------------------------------------------------------------------------------------------


def error(shown: Shown, name: str, path: str) -> str:
    """The error for a request of a file; its status must be the same."""
    expected = golden(name)
    answer = shown.client.ask(expected["method"], path, expected["request_body"])
    assert answer.status == expected["status"], answer.content
    return answer.error


@pytest.mark.parametrize("name", ["job_400", "job_404", "url_404", "v2_404"])
def test_an_error_is_flinks(shown: Shown, name: str):
    assert error(shown, name, golden(name)["url"]) == sentence_of(name)


def test_errors_about_a_job_are_flinks(shown: Shown):
    flinks = "397178fbf3c362444225a750eeea4b9b", "043d7df7dac553ba2d1f5fd409a50fc3"
    done = f"/v1/jobs/{shown.finished.job_id}"
    found = {
        "method": error(shown, "method", f"{shown.job}/savepoints"),
        "2_cancel_finished": error(shown, "2_cancel_finished", f"{done}?mode=cancel"),
        "2_patch_badmode": error(shown, "2_patch_badmode", f"{done}?mode=xyz"),
        "2_badjson": error(shown, "2_badjson", f"{shown.job}/savepoints"),
    }
    for name, message in found.items():
        own = message.replace(str(shown.running.job_id), flinks[0]).replace(str(shown.finished.job_id), flinks[1])
        assert own == sentence_of(name)


def test_a_cancelled_job_can_be_cancelled_again(shown: Shown):
    compared("2_cancel", shown, f"/v1/jobs/{shown.cancelled.job_id}")


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_failure_has_the_users_traceback_first_and_the_record(shown: Shown):
    (entry,) = shown.client.get(f"{shown.job}/exceptions")["exceptionHistory"]["entries"]
    assert entry["exceptionName"] == "ValueError"
    assert entry["stacktrace"].startswith("Traceback")
    assert "ValueError: order 60 has no amount" in entry["stacktrace"]
    assert re.fullmatch(r"check -> .* \(\d/2\) - execution #0|check \(\d/2\) - execution #0", entry["taskName"])
    (failure,) = shown.client.get(f"{shown.job}/failures")["failures"]
    assert (failure["operator"], failure["record"], failure["vertex"]) == ("check", "60", shown.vertex("check"))
    assert failure["restart-in"] is not None
    details = shown.client.get(shown.job)
    assert details["timestamps"]["RESTARTING"] > details["timestamps"]["CREATED"]
    assert {
        each["subtasks"][0]["attempt"] for each in [shown.client.get(f"{shown.job}/vertices/{failure['vertex']}")]
    } == {1}


def test_a_job_that_failed_for_good_says_why(shown: Shown):
    exceptions = shown.client.get(f"/v1/jobs/{shown.failed.job_id}/exceptions")
    expected = golden("2_done_fail-me_exceptions")["body"]
    (flinks,) = expected["exceptionHistory"]["entries"]
    # Flink's own entry has the scheduler's exception, without a task, and the user's among the concurrent ones.
    expected["exceptionHistory"]["entries"] = [flinks["concurrentExceptions"][0] | {"concurrentExceptions": []}]
    assert list(differences(expected, exceptions)) == []
    vertices = shown.client.get(f"/v1/jobs/{shown.failed.job_id}")["vertices"]
    assert {"FAILED", "CANCELED"} == {each["status"] for each in vertices}
    result = shown.client.get(f"/v1/jobs/{shown.failed.job_id}/execution-result")
    assert "order 5 has no amount" in result["job-execution-result"]["failure-cause"]["stack-trace"]


# -- stop -------------------------------------------------------------------------------------------------------------


def test_stop_with_savepoint(shown: Shown, tmp_path: Path):
    from tests.integration.web.conftest import SERVER, FailsOnce, await_state, pipeline
    from tests.support.environments import checkpointed
    from tests.support.local_cluster import launch_locally

    job = launch_locally(pipeline(checkpointed(1, 300, directory=tmp_path, **SERVER), FailsOnce(-1), "stop-me"))
    path = f"/v1/jobs/{job.job_id}"
    await_state(shown.client, job, "RUNNING")
    request = {"drain": False, "triggerId": "ab" * 16, "targetDirectory": str(tmp_path), "formatType": "NATIVE"}
    for name in ("2_stop", "2_stop_dup"):
        started = shown.client.ask("POST", f"{path}/stop", json.dumps(request))
        assert (started.status, started.body) == (202, golden(name)["body"])
    status = shown.client.get(f"{path}/savepoints/{'ab' * 16}")
    assert list(differences(golden("2_stop_status0")["body"], status)) == []
    location = operation(shown, f"{path}/savepoints/{'ab' * 16}")["location"]
    compared("2_stop_status1", shown, f"{path}/savepoints/{'ab' * 16}")
    assert (Path(location.removeprefix("file://")) / "_metadata").exists()
    await_state(shown.client, job, "FINISHED")
    last = compared("2_finished_checkpoints", shown, f"{path}/checkpoints")["latest"]["savepoint"]
    assert (last["checkpoint_type"], last["savepointFormat"]) == ("SYNC_SAVEPOINT", "NATIVE")
    for name, suffix in (("", ""), ("_checkpoints", "/checkpoints"), ("_exceptions", "/exceptions")):
        compared(f"2_done_stop-me{name}", shown, f"{path}{suffix}")
    other = shown.client.ask("GET", f"{shown.job}/savepoints/{'ab' * 16}")
    flinks = sentence_of("2_stop_status").replace("ce361ae452a558acc455b59c90ec270a", str(shown.running.job_id))
    assert (other.status, other.error) == (404, flinks)
