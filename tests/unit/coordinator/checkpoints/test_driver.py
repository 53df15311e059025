"""The shell around the ledger: what is claimed, written, deleted, answered and told, without Spark or slots."""

from __future__ import annotations

import re
from time import monotonic

import msgspec
import pytest

from rekindle.checkpoint import resolve
from rekindle.checkpoint.latest import latest
from rekindle.checkpoint.ownership import claim_first
from rekindle.checkpoint.parts import OperatorSnapshotFutures, write_subtask
from rekindle.checkpoint.paths import BEGUN, COMPLETED, StateFileName, shared_reference
from rekindle.checkpoint.statefile import StateFileWriter
from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.open_store import open_store
from rekindle.common import Configuration, JobStatus, Types
from rekindle.coordinator.checkpoints import driver as shell
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import CheckpointError, CheckpointNotFoundError, OwnershipLostError, StoreError
from rekindle.graph.build import build_plan
from rekindle.protocol import (
    CheckpointAborted,
    CheckpointAcknowledged,
    CheckpointCompleted,
    CheckpointDeclined,
    Committed,
    WrittenOperator,
)
from rekindle.spark.storage import JobStorage
from rekindle.testing import ManualClock
from tests.listed_checkpoints import list_checkpoints

NOTES = (BEGUN, COMPLETED)


def plan_of(**settings: str):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(1).enable_checkpointing(10)
    stream = env.from_collection([1, 2], Types.LONG()).map(lambda n: n, Types.LONG())
    return build_plan(env._program("shell", stream._collect()))


class Driver:
    """A `CheckpointDriver` and the one task of its job, played by the test."""

    def __init__(self, directory, recover=None, **settings: str) -> None:
        self.plan = plan_of(**settings)
        self.store = LocalStore(directory)
        keys = Configuration.from_dict({**settings, "execution.checkpointing.dir": str(directory)})
        recover = recover or JobStorage.of(plan_of(**keys.to_dict()), keys).recover
        self.told: list = []
        self.checkpointing = CheckpointDriver(
            self.plan, "0" * 32, self.store, ManualClock(1), in_memory=False, recover=recover
        )
        self.begin()

    def begin(self) -> None:
        self.basis = self.checkpointing.begin_attempt()
        self.checkpointing.started(self.told.append)

    def cut(self):
        """The next barrier, whose epoch counts."""
        order = None
        while order is None:
            self.checkpointing.take_requests()
            order = self.checkpointing.next_order({})
        self.checkpointing.cut_stands(order, {})
        return order

    def snapshot(self, order, data: bytes = b"state") -> CheckpointAcknowledged:
        """The task's snapshot, in the store."""
        (chain,) = self.plan.chains
        operators = []
        for node in chain.nodes:
            uid = self.plan.nodes[node].uid
            name = StateFileName.of(order.id, self.basis.attempt, uid, 0)
            if order.storage is None:
                writer = StateFileWriter(self.store, self.basis.storage.root, shared_reference(name))
            else:
                place = open_store(order.storage.url)
                writer = StateFileWriter(place, order.storage.root, str(name))
            state = write_subtask(writer, OperatorSnapshotFutures(0, order.id, raw_operator=[data]))
            operators.append(WrittenOperator(uid, msgspec.msgpack.encode(state), 1.0, 2.0))
        return CheckpointAcknowledged(order.id, chain.id, 0, operators, 0.0, 1.0, 2.0)

    def files(self) -> list[str]:
        """Without the notes, which outlive the checkpoints (I21)."""
        root = self.basis.storage.root
        return [entry.path for entry in self.store.list(root) if entry.path.removeprefix(f"{root}/") not in NOTES]


@pytest.fixture
def driver(tmp_path) -> Driver:
    return Driver(tmp_path / "checkpoints", **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})


def test_complete_when_published_and_told_afterwards(driver):
    order = driver.cut()
    assert not driver.told
    driver.checkpointing.on_message(driver.snapshot(order))
    assert driver.told == [CheckpointCompleted(1, False)]
    loaded = resolve.load(driver.store, latest(driver.store, "shell"))
    assert loaded.manifest.checkpoint_id == 1
    overview = driver.checkpointing.tracker.overview()
    assert overview.latest_completed is not None
    (acknowledged,) = overview.latest_completed.acknowledged
    assert [each.checkpointed_size for each in acknowledged.snapshot.operators] == [5] * 3
    assert overview.latest_completed.state_size == 15


def test_the_paths_in_the_statistics_are_what_a_recovery_takes(tmp_path):
    """As they are: of a checkpoint, of a savepoint, and of what an attempt restored."""
    driver = Driver(tmp_path / "checkpoints", **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    overview = driver.checkpointing.tracker.overview()
    for statistics, checkpoint_id in ((overview.latest_completed, 1), (overview.latest_savepoint, 2)):
        path = statistics.external_path
        again = Driver(tmp_path / "again", **{"execution.state-recovery.path": path})
        assert again.basis.restored_id == checkpoint_id
        assert again.checkpointing.tracker.overview().latest_restored.external_path == path


def test_a_checkpoint_in_memory_has_no_path(tmp_path):
    driver = Driver(tmp_path)
    driver.checkpointing.catalogue.in_memory = True
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert driver.checkpointing.tracker.overview().latest_completed.external_path is None


def test_the_log_says_what_is_triggered_and_completed(driver, caplog):
    """In the words of the texts (S1)."""
    caplog.set_level("INFO", "rekindle.checkpoint")
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    said = [re.sub(r"in \d+ ms", "in 46 ms", record.getMessage()) for record in caplog.records]
    assert said[:3] == [
        f"Triggering checkpoint 1 (type=CHECKPOINT) @ 1 for job {'0' * 32}.",
        f"Completed checkpoint 1 for job {'0' * 32} (15 bytes in 46 ms).",
        f"Triggering checkpoint 2 (type=SAVEPOINT) @ 1 for job {'0' * 32}.",
    ]
    assert said[3] == f"Completed checkpoint 2 for job {'0' * 32} (15 bytes in 46 ms)."
    assert re.fullmatch(r"Savepoint 2 is at file://.*/savepoints/savepoint-000000-\w+\.", said[4])


@pytest.mark.parametrize("incremental", [True, False])
def test_a_checkpoint_stands_on_the_last_one_only_if_they_are_incremental(tmp_path, incremental):
    """I12: without, every one is written whole."""
    driver = Driver(tmp_path / "checkpoints", **{"execution.checkpointing.incremental": str(incremental)})
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert driver.cut().base_id == (1 if incremental else None)


def test_slots_know_how_large_state_in_the_drivers_memory_may_be(tmp_path):
    driver = Driver(tmp_path / "checkpoints", **{"rekindle.checkpointing.max-memory-state-size": "100b"})
    assert driver.basis.storage.max_inline_bytes == 100


def test_what_an_aborted_checkpoint_wrote_is_deleted_also_when_it_comes_late(driver):
    """Nothing grows: an abort leaves no file, whoever was faster (I19)."""
    order = driver.cut()
    late = driver.snapshot(order)
    declined = CheckpointDeclined(order.id, late.chain, 0, "on purpose", False)
    with pytest.raises(CheckpointError, match="tolerable"):
        driver.checkpointing.on_message(declined)
    assert driver.told == [CheckpointAborted(1)]
    driver.checkpointing.on_message(late)
    assert driver.files() == []
    assert driver.checkpointing.tracker.overview().counts.failed == 1


TRACEBACK = 'Traceback (most recent call last):\n  File "orders.py", line 7, in snapshot_state\nValueError: no'


@pytest.mark.parametrize("tolerable", ["0", "1"])
def test_a_snapshot_that_fails_in_user_code_shows_the_users_traceback(tmp_path, caplog, tolerable):
    """First thing in what the job fails with; in the log when the job goes on. Of those who fail with it, one."""
    driver = Driver(tmp_path, **{"execution.checkpointing.tolerable-failed-checkpoints": tolerable})
    order = driver.cut()
    (chain,) = driver.plan.chains
    declined = CheckpointDeclined(order.id, chain.id, 0, "Could not complete snapshot 1.", False, TRACEBACK)
    if tolerable == "0":
        with pytest.raises(CheckpointError) as failure:
            driver.checkpointing.on_message(declined)
        assert str(failure.value).startswith(f"{TRACEBACK}\n\nExceeded checkpoint tolerable failure threshold (0).")
        assert TRACEBACK not in caplog.text
    else:
        driver.checkpointing.on_message(declined)
        driver.checkpointing.on_message(declined)  # late: it is over
        assert caplog.text.count(TRACEBACK) == 1


def finish(driver, order) -> None:
    """The last checkpoint is complete and committed, and the job is over."""
    driver.checkpointing.on_message(driver.snapshot(order, b"x" * 5000))
    (chain,) = driver.plan.chains
    driver.checkpointing.on_message(Committed(order.id, chain.id, 0))
    assert driver.checkpointing.ended
    driver.checkpointing.job_ended(JobStatus.FINISHED)


def test_a_finished_job_leaves_nothing_though_its_last_two_checkpoints_overlapped(driver):
    """Both stand on the same one, which has to stay for the second when the first is complete (I12, I19)."""
    large = b"x" * 5000
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))
    second = driver.cut()
    driver.checkpointing.input_ended()
    final = driver.cut()
    assert (second.base_id, final.base_id) == (1, 1)
    driver.checkpointing.on_message(driver.snapshot(second, large))
    assert len(list_checkpoints(driver.store, "shell")) == 2, "the final one still stands on the first"
    finish(driver, final)
    assert driver.files() == []


def test_a_base_goes_at_the_end_when_what_stood_on_it_came_to_nothing(tmp_path):
    """A kept checkpoint is kept alone."""
    retain = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    driver = Driver(tmp_path, **retain, **{"execution.checkpointing.max-concurrent-checkpoints": "2"})
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    second, _third = driver.cut(), driver.cut()
    driver.checkpointing.on_message(driver.snapshot(second))
    driver.checkpointing.job_ended(JobStatus.FAILED)
    assert [path.rpartition("/")[2] for path in list_checkpoints(driver.store, "shell")] == ["chk-2"]


def test_a_store_that_does_not_delete_for_a_moment_is_no_failure_of_the_job(driver, monkeypatch, caplog):
    """What should have gone goes with the next (I19)."""
    large = b"x" * 5000
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))

    def refuse(*paths):
        raise StoreError("the network is gone for a moment")

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "delete", refuse)
        driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))
    assert driver.told[-1] == CheckpointCompleted(2, False)
    assert "[1] could not be deleted: the network is gone" in caplog.text
    assert len(list_checkpoints(driver.store, "shell")) == 2
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))
    assert [path.rpartition("/")[2] for path in list_checkpoints(driver.store, "shell")] == ["chk-3"]
    assert {StateFileName.parse(path).checkpoint_id for path in driver.files() if path.endswith(".state")} == {3}


def test_a_savepoint_is_answered_with_its_place_and_told_to_nobody(driver, tmp_path):
    """I17: it neither notifies nor becomes the place to restart from."""
    asked = driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    order = driver.cut()
    assert order.savepoint
    driver.checkpointing.on_message(driver.snapshot(order))
    savepoint = asked.result(0)
    assert savepoint.location.startswith(f"file://{tmp_path}/savepoints/savepoint-")
    assert driver.told == []
    assert driver.checkpointing.ledger.restore_point is None
    location = resolve.locate(savepoint.location)
    assert resolve.load(location.store, location.path, deep=True).manifest.checkpoint_id == 1


def test_a_stop_ends_when_the_commit_is_acknowledged_and_restarts_from_its_savepoint(driver):
    asked = driver.checkpointing.requests.ask(CheckpointKind.STOP, drain=True)
    order = driver.cut()
    assert order.drain
    driver.checkpointing.input_ended()
    driver.checkpointing.on_message(driver.snapshot(order))
    assert driver.told == [CheckpointCompleted(1, True)]
    assert not driver.checkpointing.ended
    assert not asked.done()
    driver.checkpointing.failed("killed while it committed")
    driver.begin()
    assert driver.basis.restored_id == 1
    assert driver.basis.restore_root.startswith("savepoint-")
    assert driver.told[-1] == CheckpointCompleted(1, True), "only the commits are left to do"
    (chain,) = driver.plan.chains
    driver.checkpointing.on_message(Committed(1, chain.id, 0))
    assert driver.checkpointing.ended
    assert asked.result(0).id == 1


def stopped(driver) -> str:
    """The job is stopped with a savepoint and over; its URL."""
    asked = driver.checkpointing.requests.ask(CheckpointKind.STOP)
    finish(driver, driver.cut())
    return asked.result(0).location


@pytest.mark.parametrize("path", ["latest", None])
def test_latest_is_the_savepoint_that_the_job_was_stopped_with(tmp_path, path):
    """Its checkpoints are older, and what came after them is committed."""
    settings = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    keys = settings | ({"execution.state-recovery.path": path} if path else {})
    driver = Driver(tmp_path / "checkpoints", **keys)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert latest(driver.store, "shell").endswith("/chk-1")
    savepoint = stopped(driver)
    assert latest(driver.store, "shell") == savepoint
    again = Driver(tmp_path / "checkpoints", **settings, **{"execution.state-recovery.path": "latest"})
    assert again.basis.restored_id == 2
    assert latest(driver.store, "shell") == savepoint, "until there is something newer"
    again.checkpointing.on_message(again.snapshot(again.cut()))
    assert latest(driver.store, "shell") == f"{again.basis.storage.root}/chk-3"


def test_where_a_job_was_stopped_is_known_before_anything_is_committed(driver):
    """Killed in between, it goes on from the savepoint; and a restart that only commits does not forget it."""
    driver.checkpointing.requests.ask(CheckpointKind.STOP)
    known_when_told = []
    driver.checkpointing.started(lambda message: known_when_told.append(driver_stop(driver)))
    order = driver.cut()
    driver.checkpointing.on_message(driver.snapshot(order))
    assert known_when_told == [driver_stop(driver)] != [None]
    driver.checkpointing.failed("killed while it committed")
    driver.begin()
    assert driver_stop(driver) is not None


def driver_stop(driver) -> str | None:
    return latest(driver.store, "shell")


def test_a_stop_that_fails_with_its_note_leaves_neither_note_nor_savepoint(driver, tmp_path, monkeypatch):
    """The store did write it, and gave no answer: the job goes on, and `latest` is its last checkpoint."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    asked = driver.checkpointing.requests.ask(CheckpointKind.STOP)
    taken = driver.snapshot(driver.cut())
    put = driver.store.put_if_absent

    def put_then_fail(path, data):
        put(path, data)
        raise StoreError("the network is gone for a moment")

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "put_if_absent", put_then_fail)
        driver.checkpointing.on_message(taken)
    with pytest.raises(CheckpointError, match="the network is gone"):
        asked.result(0)
    assert not driver.checkpointing.ended
    assert driver_stop(driver).endswith("/chk-1")
    assert not [path for path in (tmp_path / "savepoints").rglob("*") if path.is_file()]


def test_the_files_of_a_savepoint_that_died_with_its_attempt_go(driver, tmp_path):
    asked = driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    order = driver.cut()
    driver.snapshot(order)
    driver.checkpointing.failed("a slot was killed")
    with pytest.raises(CheckpointError, match="restarting"):
        asked.result(0)
    driver.begin()
    assert not list((tmp_path / "savepoints").rglob("*.state"))


def test_who_asked_is_answered_although_the_job_fails_in_the_same_moment(driver, monkeypatch):
    """A checkpoint and a savepoint expire together: the first fails the job, the second has somebody who waits."""
    driver.cut()
    asked = driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    driver.cut()
    much_later_ms = monotonic() * 1000 + 10 * driver.checkpointing.ledger.policy.timeout_ms
    monkeypatch.setattr(shell, "_now_ms", lambda: much_later_ms)
    with pytest.raises(CheckpointError) as failure:
        driver.checkpointing.next_order({})
    with pytest.raises(CheckpointError, match="expired"):
        asked.result(0)
    assert str(failure.value) == (
        "Exceeded checkpoint tolerable failure threshold (0). "
        "Checkpoint 1 failed: Checkpoint expired before completing."
    )


def test_a_drain_into_a_directory_that_cannot_be_written_lets_the_job_go_on(driver, tmp_path):
    (tmp_path / "taken").write_text("a file where the directory should be")
    asked = driver.checkpointing.requests.ask(CheckpointKind.STOP, str(tmp_path / "taken"), drain=True)
    driver.checkpointing.take_requests()
    assert driver.checkpointing.next_order({}) is None
    with pytest.raises(CheckpointError, match="taken"):
        asked.result(0)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert driver.told[-1] == CheckpointCompleted(2, False)


def test_what_nobody_told_of_goes_when_the_job_ends(driver, tmp_path):
    """A subtask's file was written, and its acknowledgement never came; what is retained stays whole."""
    large = bytes(100_000)  # small state is in the manifest
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))
    kept = set(driver.files())
    driver.snapshot(driver.cut(), large)
    assert set(driver.files()) > kept
    driver.checkpointing.job_ended(JobStatus.SUSPENDED)
    assert set(driver.files()) == kept


def test_who_asks_after_the_end_is_told_so(driver):
    waiting = driver.checkpointing.requests.ask(CheckpointKind.CHECKPOINT)
    driver.checkpointing.job_ended(JobStatus.CANCELED)
    with pytest.raises(CheckpointError, match="has ended"):
        waiting.result(0)
    with pytest.raises(CheckpointError, match="has ended"):
        driver.checkpointing.requests.ask(CheckpointKind.CHECKPOINT).result(0)


def test_who_gave_up_waiting_does_no_harm(driver):
    asked = driver.checkpointing.requests.ask(CheckpointKind.CHECKPOINT)
    assert asked.cancel()
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert driver.told == [CheckpointCompleted(1, False)]


def test_the_latest_is_looked_for_after_the_claim(tmp_path):
    """I14: what the older driver published before it saw the claim is found; else it would be committed twice."""
    directory = tmp_path / "checkpoints"
    older = Driver(directory)
    order = older.cut()
    found = []

    def recover():
        # The claim stands: from here on the older driver can publish, but not complete.
        with pytest.raises(OwnershipLostError):
            older.checkpointing.on_message(older.snapshot(order))
        found.append(older.told)
        path = latest(older.store, "shell")
        return None if path is None else resolve.load(older.store, path)

    newer = Driver(directory, recover)
    assert found == [[]], "the older driver told nobody"
    assert newer.basis.attempt == 2
    assert newer.basis.restored_id is None


def test_an_older_driver_cannot_complete_a_savepoint(driver, tmp_path):
    """I14: the fence holds for savepoints too."""
    driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    order = driver.cut()
    claim_first(driver.store, "shell", "1" * 32, "another:1", 0)
    with pytest.raises(OwnershipLostError, match="another:1"):
        driver.checkpointing.on_message(driver.snapshot(order))
    assert not list((tmp_path / "savepoints").rglob("_metadata"))


def test_a_store_that_fails_after_it_has_published_leaves_no_damaged_checkpoint(driver, monkeypatch):
    """I16: the checkpoint counts as failed and its files go, so its `_metadata` must not stay behind as the latest."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    taken = driver.snapshot(driver.cut())
    listed, published = driver.store.list, driver.store.put_if_absent
    faults = []

    def put_then_fail(path, data):
        done = published(path, data)
        faults.append(StoreError("the network is gone for a moment"))
        return done

    monkeypatch.setattr(driver.store, "put_if_absent", put_then_fail)
    monkeypatch.setattr(driver.store, "list", lambda *prefix: listed(*prefix) if not faults else raised(faults.pop()))
    with pytest.raises(CheckpointError, match="tolerable"):
        driver.checkpointing.on_message(taken)
    assert driver.told[-1] == CheckpointAborted(2)
    assert resolve.load(driver.store, latest(driver.store, "shell"), deep=True).manifest.checkpoint_id == 1


def test_what_a_failed_publication_left_goes_with_the_next_attempt(driver, monkeypatch):
    """I16: the store writes `_metadata`, and answers neither that nor the removal: no damaged checkpoint is left."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), b"x" * 5000))
    taken = driver.snapshot(driver.cut(), b"x" * 5000)
    published = driver.store.put_if_absent

    def put_then_fall_silent(path, data):
        done = published(path, data)
        patched.setattr(driver.store, "list", lambda *prefix: raised(StoreError("the network is gone")))
        return done

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "put_if_absent", put_then_fall_silent)
        with pytest.raises(CheckpointError, match="tolerable"):
            driver.checkpointing.on_message(taken)
        driver.checkpointing.failed("the store failed")
    assert len(list_checkpoints(driver.store, "shell")) == 2
    driver.begin()
    assert driver.basis.restored_id == 1
    assert [path.rpartition("/")[2] for path in list_checkpoints(driver.store, "shell")] == ["chk-1"]
    assert resolve.load(driver.store, latest(driver.store, "shell"), deep=True).manifest.checkpoint_id == 1


def test_a_restart_looks_again_for_the_checkpoint_that_the_store_did_not_give(driver, tmp_path):
    """A job that is to go on from `latest` never begins anew because the store failed for a moment."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    answers = [StoreError("the network is gone for a moment")]

    def recover():
        if answers:
            raise answers.pop()
        return resolve.load(driver.store, latest(driver.store, "shell"))

    checkpointing = CheckpointDriver(
        driver.plan, "1" * 32, driver.store, ManualClock(1), in_memory=False, recover=recover
    )
    with pytest.raises(StoreError):
        checkpointing.begin_attempt()
    checkpointing.failed("the store failed")
    assert checkpointing.begin_attempt().restored_id == 1


def raised(error):
    raise error


def resumed(directory, **settings: str) -> Driver:
    """The program run again with `latest`."""
    return Driver(directory, **settings, **{"execution.state-recovery.path": "latest"})


def test_ids_grow_over_drivers_also_above_what_was_never_completed(tmp_path):
    driver = Driver(tmp_path)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.snapshot(driver.cut(), b"x" * 1_000_000)  # the driver dies before it completes checkpoint 2
    again = resumed(tmp_path)
    assert again.basis.restored_id == 1
    assert again.cut().id == 3


@pytest.mark.parametrize("path", ["latest", None])
def test_a_job_that_is_started_with_latest_is_found_ended(tmp_path, path):
    """I9: a driver that dies just after its job's end does not begin it once more; others clean up, as in Flink, and
    whoever looks for the latest then is refused (I21)."""
    driver = Driver(tmp_path, **({"execution.state-recovery.path": path} if path else {}))
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.checkpointing.input_ended()
    order = driver.cut()
    finish(driver, order)
    if path:
        assert latest(driver.store, "shell") == f"{driver.basis.storage.root}/chk-{order.id}"
    else:
        with pytest.raises(CheckpointNotFoundError, match="To begin anew on purpose, start the job without"):
            latest(driver.store, "shell")
