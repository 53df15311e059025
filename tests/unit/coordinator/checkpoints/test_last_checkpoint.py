"""The last checkpoint of a job: final (I9) and stop with savepoint (I17)."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.ledger import (
    CheckpointLedger,
    Step,
)
from rekindle.coordinator.checkpoints.types import (
    Aborted,
    Answer,
    CheckpointFailureReason,
    CheckpointKind,
    CheckpointRequest,
    CompletedCheckpoint,
    Decision,
    EndJob,
    FailJob,
    NotifyComplete,
    Publish,
    ResumeInput,
)
from rekindle.graph.settings import CheckpointPolicy

A, B = (0, 0), (1, 0)
BOTH = frozenset({A, B})
Reason = CheckpointFailureReason
Kind = CheckpointKind
STOP = CheckpointRequest("stop", Kind.STOP, location="sp")
DRAIN = CheckpointRequest("drain", Kind.STOP, location="sp", drain=True)


class Driver:
    """Holds a ledger as the checkpoint driver does, and collects its decisions."""

    def __init__(self, restored: CompletedCheckpoint | None = None, **policy: Any) -> None:
        fields: dict[str, Any] = {"interval_ms": 1000, **policy}
        self.ledger = CheckpointLedger(CheckpointPolicy(**fields), BOTH)
        self.now = 0.0
        self.first = self.did(self.ledger.attempt_started(0.0, restored))

    def did(self, step: Step) -> list[Decision]:
        self.ledger = step[0]
        return list(step[1])

    def trigger(self, at: float) -> tuple[int, CheckpointKind] | None:
        self.now = at
        decisions = self.did(self.ledger.trigger(at, wall_ms=0))
        return (decisions[0].id, decisions[0].kind) if decisions else None  # type: ignore[union-attr]

    def publish(self, checkpoint: int) -> list[Decision]:
        decisions = self.did(self.ledger.cut_stands(checkpoint))
        for subtask in sorted(BOTH):
            decisions += self.did(self.ledger.acknowledge(checkpoint, subtask))
        assert [type(each) for each in decisions] == [Publish]
        return self.did(self.ledger.published(checkpoint, f"at-{checkpoint}", self.now))

    def commit(self, checkpoint: int) -> list[Decision]:
        first = self.did(self.ledger.commit_acknowledged(checkpoint, A))
        assert first == [], "the other subtask has not committed"
        return self.did(self.ledger.commit_acknowledged(checkpoint, B))

    def decline(self, checkpoint: int) -> list[Decision]:
        return self.did(self.ledger.decline(checkpoint, A, "no", self.now))

    def restart(self, at: float) -> list[Decision]:
        self.did(self.ledger.attempt_failed("slot 0 died"))
        return self.did(self.ledger.attempt_started(at, self.ledger.restore_point))


# -- final ------------------------------------------------------------------------------------------------------------


def test_a_bounded_job_ends_with_a_final_checkpoint_and_every_commit():
    driver = Driver(min_pause_ms=60_000)
    driver.publish(driver.trigger(1000)[0])  # type: ignore[index]
    assert driver.did(driver.ledger.input_ended(1001)) == []
    assert driver.ledger.next_wake_ms(1001) == 1001, "neither interval nor pause delay it"
    assert driver.trigger(1001) == (2, Kind.FINAL)
    assert driver.ledger.holds_input
    assert driver.trigger(10**6) is None, "nothing follows the last"
    done = driver.publish(2)
    assert NotifyComplete(2, acknowledge=True) in done
    assert driver.commit(1) == [], "an earlier one's commits end nothing"
    assert driver.commit(2) == [EndJob()]
    assert driver.did(driver.ledger.commit_acknowledged(2, A)) == [], "said once"


def test_without_checkpointing_the_job_just_ends():
    driver = Driver(interval_ms=-1)
    assert driver.did(driver.ledger.input_ended(5)) == [EndJob()]


def test_the_final_checkpoint_subsumes_pending_ones_and_ignores_max_concurrent():
    driver = Driver()
    assert driver.trigger(1000) == (1, Kind.CHECKPOINT)
    driver.did(driver.ledger.input_ended(1001))
    assert driver.trigger(1001) == (2, Kind.FINAL)
    assert [each.id for each in driver.publish(2) if isinstance(each, Aborted)] == [1]


def test_a_final_checkpoint_is_retried_until_it_completes():
    driver = Driver(tolerable_failures=2, final_retry_ms=300)
    driver.did(driver.ledger.input_ended(0))
    assert driver.trigger(0) == (1, Kind.FINAL)
    assert [type(each) for each in driver.decline(1)] == [Aborted]
    assert not driver.ledger.holds_input
    assert driver.trigger(299) is None
    assert driver.ledger.next_wake_ms(299) == 300
    assert driver.trigger(300) == (2, Kind.FINAL)
    driver.publish(2)
    assert driver.commit(2) == [EndJob()]


def test_a_final_checkpoint_that_fails_too_often_fails_the_job():
    driver = Driver(tolerable_failures=1, final_retry_ms=300, timeout_ms=1000)
    driver.did(driver.ledger.input_ended(0))
    driver.trigger(0)
    driver.decline(1)
    assert driver.trigger(300) == (2, Kind.FINAL)
    decisions = driver.did(driver.ledger.expire(1300))
    assert [type(each) for each in decisions] == [Aborted, FailJob]


def test_a_restart_while_committing_only_commits():
    driver = Driver()
    driver.did(driver.ledger.input_ended(0))
    driver.trigger(0)
    driver.publish(1)
    driver.did(driver.ledger.commit_acknowledged(1, A))
    assert driver.restart(2000) == [NotifyComplete(1, acknowledge=True)]
    assert driver.trigger(10**6) is None
    assert driver.commit(1) == [EndJob()]


def test_a_restore_by_hand_from_a_final_checkpoint_only_commits():
    driver = Driver(CompletedCheckpoint(7, Kind.FINAL, "at-7", 0))
    assert driver.first == [NotifyComplete(7, acknowledge=True)]
    assert driver.commit(7) == [EndJob()]


def test_a_restart_before_the_final_checkpoint_completes_waits_for_the_end_of_the_input_again():
    driver = Driver()
    driver.did(driver.ledger.input_ended(0))
    driver.trigger(0)
    assert driver.restart(100) == []
    assert driver.trigger(101) is None
    driver.did(driver.ledger.input_ended(200))
    assert driver.trigger(200) == (2, Kind.FINAL)


# -- stop with savepoint ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [STOP, DRAIN])
def test_a_stop_holds_the_input_until_every_commit_is_acknowledged(request_: CheckpointRequest):
    driver = Driver()
    driver.did(driver.ledger.request(request_))
    assert not driver.ledger.holds_input, "not before the cut"
    assert driver.trigger(10) == (1, Kind.STOP)
    assert driver.ledger.holds_input
    assert driver.trigger(10**6) is None
    done = driver.publish(1)
    assert NotifyComplete(1, acknowledge=True) in done
    assert not [each for each in done if isinstance(each, Answer)], "the caller is answered when the job has stopped"
    assert driver.commit(1) == [Answer(request_.token, driver.ledger.restore_point), EndJob()]


def test_a_stop_that_fails_without_drain_lets_the_job_go_on():
    driver = Driver(tolerable_failures=0)
    driver.did(driver.ledger.request(STOP))
    driver.trigger(10)
    aborted, answer, resume = driver.decline(1)
    assert isinstance(aborted, Aborted)
    assert answer == Answer("stop", None, Reason.CHECKPOINT_DECLINED, "Checkpoint was declined. no")
    assert resume == ResumeInput()
    assert driver.trigger(1000) == (2, Kind.CHECKPOINT)


def test_a_stop_that_fails_with_drain_restarts_from_the_last_checkpoint():
    driver = Driver(tolerable_failures=100)
    driver.publish(driver.trigger(1000)[0])  # type: ignore[index]
    driver.did(driver.ledger.request(DRAIN))
    driver.trigger(1001)
    decisions = driver.decline(2)
    assert [type(each) for each in decisions] == [Aborted, Answer, FailJob]
    assert driver.ledger.restore_point is not None
    assert driver.ledger.restore_point.id == 1
    assert driver.restart(2000) == []
    assert driver.trigger(3000) == (3, Kind.CHECKPOINT)


def test_a_stop_whose_barrier_was_not_sent_has_drained_nothing_and_lets_the_job_go_on():
    """I17: a directory that cannot be written is the caller's mistake, whether with drain or without."""
    driver = Driver(tolerable_failures=0)
    driver.did(driver.ledger.request(DRAIN))
    driver.trigger(10)
    _, answer, resume = driver.did(driver.ledger.abort(1, Reason.IO_EXCEPTION, "There is no directory.", 11))
    assert isinstance(answer, Answer)
    assert answer.message.endswith("There is no directory.")
    assert resume == ResumeInput()
    assert driver.trigger(1000) == (2, Kind.CHECKPOINT)


@pytest.mark.parametrize("interval_ms", [-1, 1000], ids=["without checkpoints", "with checkpoints"])
def test_a_stop_that_fails_when_the_input_has_ended_with_it_lets_the_job_end(interval_ms):
    """I17: the job goes on and ends; `input_ended` is not called a second time."""
    driver = Driver(interval_ms=interval_ms)
    driver.did(driver.ledger.request(STOP))
    driver.trigger(10)
    assert driver.did(driver.ledger.cut_stands(1)) == []
    assert driver.did(driver.ledger.input_ended(11)) == []
    _, _, resume, *more = driver.decline(1)
    assert resume == ResumeInput()
    if interval_ms > 0:
        assert more == []
        assert driver.trigger(12) == (2, Kind.FINAL)
    else:
        assert more == [EndJob()]


def test_a_restart_forgets_that_the_input_had_ended():
    driver = Driver(interval_ms=-1)
    driver.did(driver.ledger.request(STOP))
    driver.trigger(10)
    driver.did(driver.ledger.input_ended(11))
    driver.restart(20)
    driver.did(driver.ledger.request(STOP))
    driver.trigger(30)
    assert [type(each) for each in driver.decline(2)] == [Aborted, Answer, ResumeInput]


def test_a_stop_subsumes_lower_checkpoints_but_is_no_base():
    driver = Driver(max_concurrent=2)
    driver.publish(driver.trigger(1000)[0])  # type: ignore[index]
    driver.trigger(2000)
    driver.did(driver.ledger.request(STOP))
    assert driver.trigger(2001) == (3, Kind.STOP)
    assert [each.id for each in driver.publish(3) if isinstance(each, Aborted)] == [2]
    assert driver.ledger.base_id == 1
    assert [each.id for each in driver.ledger.completed] == [1]


def test_a_restart_after_the_savepoint_completed_finishes_the_stop_from_it():
    driver = Driver()
    driver.publish(driver.trigger(1000)[0])  # type: ignore[index]
    driver.did(driver.ledger.request(STOP))
    driver.trigger(1001)
    driver.publish(2)
    driver.did(driver.ledger.commit_acknowledged(2, B))
    assert driver.restart(5000) == [NotifyComplete(2, acknowledge=True)], "what was committed is not replayed"
    assert driver.ledger.base_id is None
    assert driver.commit(2) == [Answer("stop", driver.ledger.restore_point), EndJob()]


def test_a_job_that_ends_half_stopped_says_where_the_savepoint_is():
    driver = Driver()
    driver.did(driver.ledger.request(STOP))
    driver.trigger(10)
    driver.publish(1)
    driver.did(driver.ledger.attempt_failed())
    (answer,) = driver.did(driver.ledger.job_ended(JobStatus.FAILED))
    assert isinstance(answer, Answer)
    assert answer.reason is Reason.TASK_FAILURE
    assert answer.checkpoint is not None
    assert "at-1" in answer.message


def test_a_restore_by_hand_from_a_stops_savepoint_goes_on_as_usual():
    driver = Driver(CompletedCheckpoint(3, Kind.STOP, "at-3", 0))
    assert driver.first == []
    assert driver.trigger(1000) == (4, Kind.CHECKPOINT)


def test_requests_are_refused_while_the_job_stops():
    driver = Driver()
    driver.did(driver.ledger.request(STOP))
    for at in (0, 10):
        for request in (CheckpointRequest("x", Kind.SAVEPOINT), CheckpointRequest("y", Kind.STOP)):
            (answer,) = driver.did(driver.ledger.request(request))
            assert isinstance(answer, Answer)
            assert answer.reason is Reason.CHECKPOINT_COORDINATOR_SUSPEND
        if at == 0:
            assert driver.trigger(10) == (1, Kind.STOP)


def test_a_stop_that_is_requested_when_the_input_ends_is_the_last_checkpoint():
    driver = Driver()
    driver.did(driver.ledger.request(STOP))
    driver.did(driver.ledger.input_ended(10))
    assert driver.trigger(10) == (1, Kind.STOP)
    driver.decline(1)
    assert driver.trigger(11) == (2, Kind.FINAL), "and if it fails there is still the final one"


def test_a_pending_savepoint_is_aborted_when_the_job_ends():
    driver = Driver()
    driver.did(driver.ledger.request(CheckpointRequest("s", Kind.SAVEPOINT)))
    driver.trigger(10)
    aborted, answer = driver.did(driver.ledger.job_ended(JobStatus.FINISHED))
    assert isinstance(aborted, Aborted)
    assert aborted.reason is Reason.CHECKPOINT_COORDINATOR_SHUTDOWN
    assert isinstance(answer, Answer)
    assert answer.message == "CheckpointCoordinator shutdown."
