"""A command finds the job that is meant, among the drivers of the user or at an address, or says what there is."""

from __future__ import annotations

from rekindle.checkpoint.store.local import LocalStore
from rekindle.cli import printed
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import StatusEntered
from rekindle.monitor.job_history import HistoryWriter
from rekindle.web.served_jobs import RunningJob
from tests.support.recorded_jobs import JOB_ID, FakeHandle, RecordedJob
from tests.unit.cli.conftest import rekindle
from tests.unit.web.conftest import TOKEN, serve

OTHER_ID = "0a1b2c3e" * 4


def add_job(served, job_id=OTHER_ID):
    """Another job of the same driver, with the same name."""
    job = RecordedJob().run()
    job.recorder._job_id = job_id
    served.server.jobs.add(RunningJob(job.recorder, FakeHandle(job_id)))


def test_the_jobs_of_this_users_drivers_are_listed(served):
    listed = rekindle("list")
    assert listed.code == 0
    assert JOB_ID in listed.out
    assert served.server.url.rstrip("/") in listed.out
    (job,) = rekindle("list", "--json").document["jobs"]
    assert (job["jid"], job["name"], job["state"]) == (JOB_ID, "orders", "RUNNING")
    assert job["address"] == served.server.url.rstrip("/")


def test_jobs_that_are_over_are_listed_with_all_only(served):
    served.job.recorder.on_event(StatusEntered(JobStatus.FINISHED))
    assert rekindle("list", "--json").document == {"jobs": []}
    assert rekindle("list").out == "No job runs.\n"
    assert [job["state"] for job in rekindle("list", "-a", "--json").document["jobs"]] == ["FINISHED"]


def test_without_a_driver_nothing_is_listed_and_a_job_is_not_found():
    assert rekindle("list", "--json").document == {"jobs": []}
    ended = rekindle("watch", "--once")
    assert (ended.code, ended.out) == (3, "")
    assert ended.errors == (
        "No job runs of this user on this machine: start one with rekindle run, or name its driver with --address.\n"
    )


def test_a_job_is_named_by_name_id_or_the_beginning_of_its_id_or_not_at_all(served):
    for name in ("orders", JOB_ID, JOB_ID.upper(), JOB_ID[:4]):
        assert rekindle("watch", name, "--once", "--json").document["jid"] == JOB_ID, name
    assert rekindle("watch", "--once", "--json").document["jid"] == JOB_ID


def test_a_job_is_named_by_its_directory_of_checkpoints(served, tmp_path):
    directory = tmp_path / "histories"
    directory.mkdir()
    assert rekindle("watch", directory, "--once").code == 3
    HistoryWriter(served.job.recorder, LocalStore(directory), "orders", 20)._write(is_first=True)
    assert rekindle("watch", directory, "--once", "--json").document["jid"] == JOB_ID


def test_several_jobs_are_listed_in_the_sentence(served):
    add_job(served)
    for arguments in ((), ("orders",), ("0a1b2c3",)):
        ended = rekindle("savepoint", *arguments)
        assert ended.code == 2, arguments
        assert JOB_ID in ended.errors
        assert OTHER_ID in ended.errors
        assert ended.errors.count("\n") == 1
    assert rekindle("watch", OTHER_ID[:8], "--once", "--json").document["jid"] == OTHER_ID


def test_an_unknown_name_lists_what_there_is(served):
    ended = rekindle("stop", "oders")
    assert (ended.code, ended.out) == (3, "")
    assert f"There is no running job 'oders' of this user on this machine: there is 'orders' ({JOB_ID}" in ended.errors


def test_a_job_that_is_over_is_not_stopped(served):
    served.job.recorder.on_event(StatusEntered(JobStatus.FAILED))
    ended = rekindle("stop", "orders")
    assert ended.code == 3
    assert "does not run any more: it is FAILED." in ended.errors


class TestAddress:
    def test_a_driver_elsewhere_needs_its_token(self, tmp_path, monkeypatch):
        guarded = serve(tmp_path, **{"rekindle.rest.token": TOKEN})
        try:
            address = f"127.0.0.1:{guarded.server.port}"
            refused = rekindle("list", "--address", address)
            assert (refused.code, refused.out) == (4, "")
            assert "give its token with --token or in REKINDLE_TOKEN" in refused.errors
            assert rekindle("list", "--address", address, "--token", TOKEN, "--json").document["jobs"]
            assert rekindle("list", "--address", guarded.server.link, "--json").document["jobs"]
            monkeypatch.setenv("REKINDLE_TOKEN", TOKEN)
            monkeypatch.setenv("REKINDLE_ADDRESS", f"http://{address}")
            assert rekindle("list", "--json").document["jobs"]
        finally:
            guarded.server.close()

    def test_a_token_comes_with_the_note_of_an_own_driver(self, tmp_path, announce):
        guarded = serve(tmp_path, **{"rekindle.rest.token": TOKEN})
        try:
            announce(guarded.server)
            assert rekindle("list", "--json").document["jobs"]
        finally:
            guarded.server.close()

    def test_nobody_answers(self, tmp_path, announce):
        gone = serve(tmp_path)
        announce(gone.server)
        gone.server.close()
        address = gone.server.url
        ended = rekindle("list", "--address", address)
        assert (ended.code, ended.out) == (4, "")
        assert ended.errors.startswith(f"Nobody answers at {address.rstrip('/')} (")
        # A note of a driver that does not answer does not hide the others.
        assert (rekindle("list").code, rekindle("list").out) == (0, "No job runs.\n")

    def test_what_is_no_address_is_refused(self):
        ended = rekindle("list", "--address", "ftp://somewhere")
        assert (ended.code, ended.errors) == (
            2,
            "'ftp://somewhere' is no address of a driver: write http://host:port.\n",
        )


def test_a_narrow_terminal_lists_the_beginning_of_each_id(served, monkeypatch):
    monkeypatch.setattr(printed, "_WIDTH_ELSEWHERE", 80)
    (row,) = [line for line in rekindle("list").out.splitlines() if " orders " in line]
    assert row.split()[0] == JOB_ID[:8]
    assert row.rstrip().endswith(served.server.url.rstrip("/"))
    assert rekindle("watch", row.split()[0], "--once", "--json").document["jid"] == JOB_ID
