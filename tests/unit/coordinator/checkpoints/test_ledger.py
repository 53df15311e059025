"""The decisions of the checkpoint ledger, case by case."""

from __future__ import annotations

from typing import TypeVar

import pytest

from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.ledger import (
    CheckpointLedger,
    Step,
)
from rekindle.coordinator.checkpoints.types import (
    RETAINED_AT_END,
    Aborted,
    Answer,
    CheckpointFailureReason,
    CheckpointKind,
    CheckpointRequest,
    CheckpointState,
    CompletedCheckpoint,
    Decision,
    Discard,
    DiscardLate,
    FailJob,
    NotifyComplete,
    Publish,
    TriggerCheckpoint,
)
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.graph.settings import CheckpointPolicy

D = TypeVar("D")
A, B = (0, 0), (1, 0)
BOTH = frozenset({A, B})
Reason = CheckpointFailureReason
Kind = CheckpointKind
SAVEPOINT = CheckpointRequest("s", Kind.SAVEPOINT, location="sp")
BY_HAND = CheckpointRequest("h", Kind.CHECKPOINT)


class Driver:
    """Holds a ledger as the checkpoint driver does, and collects its decisions."""

    def __init__(self, restored: CompletedCheckpoint | None = None, last_id: int = 0, **policy: object) -> None:
        settings = {"interval_ms": 1000, **policy}
        self.ledger = CheckpointLedger(CheckpointPolicy(**settings), BOTH, last_id=last_id)  # type: ignore[arg-type]
        self.now = 0.0
        self.did(self.ledger.attempt_started(0.0, restored))

    def did(self, step: Step) -> list[Decision]:
        self.ledger = step[0]
        return list(step[1])

    def trigger(self, at: float | None = None) -> TriggerCheckpoint | None:
        self.now = self.now if at is None else at
        decisions = self.did(self.ledger.trigger(self.now, wall_ms=round(self.now) + 5_000))
        assert len(decisions) <= 1
        trigger = decisions[0] if decisions else None
        assert trigger is None or isinstance(trigger, TriggerCheckpoint)
        return trigger

    def must_trigger(self, at: float | None = None) -> int:
        trigger = self.trigger(at)
        assert trigger is not None, f"nothing was triggered at {self.now}"
        return trigger.id

    def acknowledge_all(self, checkpoint: int) -> list[Decision]:
        decisions = self.did(self.ledger.cut_stands(checkpoint))
        for subtask in sorted(BOTH):
            decisions += self.did(self.ledger.acknowledge(checkpoint, subtask))
        return decisions

    def complete(self, checkpoint: int, at: float | None = None) -> list[Decision]:
        self.now = self.now if at is None else at
        assert any(isinstance(each, Publish) for each in self.acknowledge_all(checkpoint))
        return self.did(self.ledger.published(checkpoint, f"chk-{checkpoint}", self.now))

    def decline(self, checkpoint: int, subtask: tuple[int, int] = A, message: str = "") -> list[Decision]:
        return self.did(self.ledger.decline(checkpoint, subtask, message, self.now))


def only(decisions: list[Decision], kind: type[D]) -> list[D]:
    return [each for each in decisions if isinstance(each, kind)]


# -- retention --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retention", "status", "stays"),
    [
        ("RETAIN_ON_CANCELLATION", JobStatus.CANCELED, True),
        ("RETAIN_ON_CANCELLATION", JobStatus.FAILED, True),
        ("RETAIN_ON_CANCELLATION", JobStatus.FINISHED, False),
        ("DELETE_ON_CANCELLATION", JobStatus.CANCELED, False),
        ("DELETE_ON_CANCELLATION", JobStatus.FAILED, True),
        ("DELETE_ON_CANCELLATION", JobStatus.FINISHED, False),
        ("NO_EXTERNALIZED_CHECKPOINTS", JobStatus.CANCELED, False),
        ("NO_EXTERNALIZED_CHECKPOINTS", JobStatus.FAILED, True),
    ],
)
def test_the_checkpoints_that_stay_after_the_jobs_end(retention: str, status: JobStatus, stays: bool):
    driver = Driver(retention=ExternalizedCheckpointRetention[retention])
    driver.complete(driver.must_trigger(1000))
    discards = only(driver.did(driver.ledger.job_ended(status)), Discard)
    assert [each.id for each in driver.ledger.completed] == ([1] if stays else [])
    assert bool(discards) is not stays
    assert (status in RETAINED_AT_END[ExternalizedCheckpointRetention[retention]]) is stays


# -- triggers ---------------------------------------------------------------------------------------------------------


def test_a_checkpoint_starts_every_interval_at_a_fixed_rate():
    driver = Driver()
    assert driver.trigger(999) is None
    driver.complete(driver.must_trigger(1000), at=1100)
    assert driver.trigger(1999) is None
    driver.complete(driver.must_trigger(2350), at=2400)  # an epoch was late
    assert driver.trigger(2999) is None
    driver.complete(driver.must_trigger(3000))
    driver.complete(driver.must_trigger(9500))  # late by many intervals: begins anew
    assert driver.trigger(10_499) is None
    assert driver.must_trigger(10_500) == 5


def test_without_an_interval_only_requests_trigger():
    driver = Driver(interval_ms=-1)
    assert driver.trigger(10**9) is None
    assert driver.ledger.next_wake_ms(0) is None
    driver.did(driver.ledger.request(BY_HAND))
    assert driver.must_trigger() == 1


def test_the_pause_begins_with_a_completion_not_with_a_failure():
    driver = Driver(min_pause_ms=5000, tolerable_failures=9)
    driver.decline(driver.must_trigger(1000))
    driver.complete(driver.must_trigger(2000), at=2500)
    assert driver.trigger(7499) is None
    assert driver.ledger.next_wake_ms(7000) == 7500
    assert driver.must_trigger(7500) == 3


def test_no_more_than_max_concurrent_are_under_way():
    driver = Driver(max_concurrent=2)
    first, second = driver.must_trigger(1000), driver.must_trigger(2000)
    assert driver.trigger(3000) is None
    driver.complete(first)
    assert driver.must_trigger(3001) == second + 1


def test_requested_checkpoints_ignore_interval_and_pause_but_not_concurrency():
    driver = Driver(min_pause_ms=10_000)
    driver.complete(driver.must_trigger(1000))
    driver.did(driver.ledger.request(BY_HAND))
    driver.did(driver.ledger.request(CheckpointRequest("h2", Kind.CHECKPOINT)))
    assert driver.ledger.next_wake_ms(1001) == 1001
    by_hand = driver.must_trigger(1001)
    assert driver.trigger(1002) is None, "one at a time"
    done = driver.complete(by_hand)
    assert only(done, Answer) == [Answer("h", driver.ledger.restore_point)]
    second = driver.trigger(1003)
    assert second is not None
    assert second.request == CheckpointRequest("h2", Kind.CHECKPOINT)


def test_savepoints_go_first_and_wait_for_nothing():
    driver = Driver()
    driver.must_trigger(1000)
    driver.did(driver.ledger.request(BY_HAND))
    driver.did(driver.ledger.request(SAVEPOINT))
    trigger = driver.trigger(1001)
    assert trigger is not None
    assert (trigger.kind, trigger.request) == (Kind.SAVEPOINT, SAVEPOINT)
    assert driver.trigger(1002) is None, "a pending savepoint counts against the checkpoints"


def test_a_manual_checkpoint_does_not_move_the_timer():
    driver = Driver(max_concurrent=3)
    driver.did(driver.ledger.request(BY_HAND))
    driver.complete(driver.must_trigger(900))
    assert driver.must_trigger(1000) == 2


def test_requests_are_bounded_and_refused_while_no_task_runs():
    driver = Driver()
    driver.must_trigger(1000)
    for number in range(1000):
        assert driver.did(driver.ledger.request(CheckpointRequest(str(number), Kind.CHECKPOINT))) == []
    (answer,) = driver.did(driver.ledger.request(BY_HAND))
    assert isinstance(answer, Answer)
    assert answer.reason is Reason.TOO_MANY_CHECKPOINT_REQUESTS
    answers = only(driver.did(driver.ledger.attempt_failed()), Answer)
    assert len(answers) == 1000
    (answer,) = driver.did(driver.ledger.request(BY_HAND))
    assert isinstance(answer, Answer)
    assert answer.reason is Reason.NOT_ALL_REQUIRED_TASKS_RUNNING


def test_while_the_reader_is_behind_only_requests_and_the_final_checkpoint_trigger():
    """An epoch brings results, so a periodic checkpoint waits; the final one ends the job."""
    driver = Driver()
    driver.ledger = driver.ledger.with_reader_behind(True)
    assert driver.trigger(at=5000) is None
    assert driver.ledger.next_wake_ms(5000) is None, "it would look again and again"
    driver.did(driver.ledger.request(SAVEPOINT))
    driver.complete(driver.must_trigger())
    assert driver.trigger() is None
    driver.did(driver.ledger.input_ended(driver.now))
    assert driver.trigger() is not None


def test_the_ledger_says_when_to_look_again():
    driver = Driver(timeout_ms=700)
    assert driver.ledger.next_wake_ms(0) == 1000
    checkpoint = driver.must_trigger(1000)
    assert driver.ledger.next_wake_ms(1001) == 1700, "the timeout; no place for another"
    driver.acknowledge_all(checkpoint)
    assert driver.ledger.next_wake_ms(1002) is None, "only the store's answer counts now"
    driver.did(driver.ledger.published(checkpoint, "chk-1", 1003))
    assert driver.ledger.next_wake_ms(1004) == 2000
    assert driver.ledger.next_wake_ms(5000) == 5000, "never in the past"


# -- acknowledgement and publication ----------------------------------------------------------------------------------


def test_a_checkpoint_is_published_when_the_cut_stands_and_all_have_acknowledged_in_either_order():
    driver = Driver()
    first = driver.must_trigger(1000)
    assert driver.did(driver.ledger.acknowledge(first, A)) == []
    assert driver.did(driver.ledger.acknowledge(first, B)) == [], "the epoch has not counted yet (I3)"
    (publish,) = driver.did(driver.ledger.cut_stands(first))
    assert isinstance(publish, Publish)
    assert publish.checkpoint.state is CheckpointState.PUBLISHING
    driver.did(driver.ledger.published(first, "chk-1", 1100))
    second = driver.must_trigger(2000)
    assert driver.did(driver.ledger.cut_stands(second)) == []
    assert driver.did(driver.ledger.acknowledge(second, A)) == []
    assert driver.did(driver.ledger.acknowledge(second, A)) == [], "a repeated acknowledgement changes nothing"
    assert len(driver.did(driver.ledger.acknowledge(second, B))) == 1


def test_a_completed_checkpoint_notifies_the_tasks_and_becomes_the_base_of_deltas():
    driver = Driver()
    trigger = driver.trigger(1000)
    assert trigger is not None
    assert (trigger.id, trigger.base_id, trigger.timestamp_ms) == (1, None, 6000)
    done = driver.complete(1)
    assert only(done, NotifyComplete) == [NotifyComplete(1, acknowledge=False)]
    following = driver.trigger(2000)
    assert following is not None
    assert (following.id, following.base_id) == (2, 1)


def test_only_num_retained_checkpoints_are_kept():
    driver = Driver(num_retained=2)
    gone = [only(driver.complete(driver.must_trigger(1000 * n)), Discard) for n in range(1, 5)]
    assert [[old.id for discard in each for old in discard.checkpoints] for each in gone] == [[], [], [1], [2]]
    assert [each.id for each in driver.ledger.completed] == [3, 4]


def test_completing_subsumes_lower_checkpoints_but_no_savepoint():
    driver = Driver(max_concurrent=3)
    slow = driver.must_trigger(1000)
    driver.did(driver.ledger.request(SAVEPOINT))
    savepoint = driver.must_trigger(1500)
    fast = driver.must_trigger(2000)
    done = driver.complete(fast)
    (aborted,) = only(done, Aborted)
    assert (aborted.id, aborted.reason, aborted.notify) == (slow, Reason.CHECKPOINT_SUBSUMED, True)
    assert [each.id for each in driver.ledger.pending] == [savepoint]
    assert driver.did(driver.ledger.acknowledge(slow, A)) == [DiscardLate(slow, A)]
    assert driver.ledger.failures == 0


def test_a_lower_checkpoint_waits_while_a_higher_one_is_being_published():
    driver = Driver(max_concurrent=2, tolerable_failures=5)
    low, high = driver.must_trigger(1000), driver.must_trigger(2000)
    assert len(driver.acknowledge_all(high)) == 1
    assert driver.acknowledge_all(low) == []
    aborted, publish = driver.did(driver.ledger.publish_failed(high, "disk full", 2100))
    assert isinstance(aborted, Aborted)
    assert aborted.reason is Reason.FINALIZE_CHECKPOINT_FAILURE
    assert isinstance(publish, Publish)
    assert publish.checkpoint.id == low


def test_a_savepoint_neither_subsumes_nor_notifies_nor_becomes_a_base():
    driver = Driver(max_concurrent=2, num_retained=1)
    driver.complete(driver.must_trigger(1000))
    lower = driver.must_trigger(2000)
    driver.did(driver.ledger.request(SAVEPOINT))
    done = driver.complete(driver.must_trigger(2001))
    assert only(done, NotifyComplete) == only(done, Aborted) == only(done, Discard) == []
    assert only(done, Answer) == [Answer("s", CompletedCheckpoint(3, Kind.SAVEPOINT, "chk-3", 7001))]
    assert [each.id for each in driver.ledger.pending] == [lower]
    assert (driver.ledger.base_id, driver.ledger.restore_point.id) == (1, 1)  # type: ignore[union-attr]


def test_after_a_savepoint_the_pause_holds_as_in_flink():
    driver = Driver(min_pause_ms=3000)
    driver.did(driver.ledger.request(SAVEPOINT))
    driver.complete(driver.must_trigger(500), at=600)
    assert driver.trigger(3599) is None
    assert driver.must_trigger(3600) == 2


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_timeout_aborts_and_late_messages_are_ignored():
    driver = Driver(timeout_ms=500, tolerable_failures=1)
    checkpoint = driver.must_trigger(1000)
    driver.did(driver.ledger.acknowledge(checkpoint, A))
    assert driver.did(driver.ledger.expire(1499)) == []
    (aborted,) = driver.did(driver.ledger.expire(1500))
    assert isinstance(aborted, Aborted)
    assert (aborted.id, aborted.reason) == (checkpoint, Reason.CHECKPOINT_EXPIRED)
    assert driver.did(driver.ledger.cut_stands(checkpoint)) == []
    assert driver.did(driver.ledger.acknowledge(checkpoint, B)) == [DiscardLate(checkpoint, B)]
    assert driver.decline(checkpoint) == []


def test_a_timeout_does_not_abort_a_checkpoint_that_is_being_published():
    driver = Driver(timeout_ms=500, max_concurrent=2)
    low, high = driver.must_trigger(1000), driver.must_trigger(2000)
    driver.acknowledge_all(high)
    driver.acknowledge_all(low)  # waits for its turn only
    assert driver.did(driver.ledger.expire(10**6)) == []
    assert driver.did(driver.ledger.abort(high, Reason.IO_EXCEPTION, "", 10**6)) == []


@pytest.mark.parametrize("tolerable", [0, 1, 3])
def test_more_failures_in_a_row_than_tolerated_fail_the_job(tolerable: int):
    driver = Driver(tolerable_failures=tolerable)
    for n in range(1, tolerable + 1):
        assert only(driver.decline(driver.must_trigger(1000 * n)), FailJob) == []
    (failure,) = only(driver.decline(driver.must_trigger(100_000), message="Could not complete snapshot."), FailJob)
    assert failure.message == (
        f"Exceeded checkpoint tolerable failure threshold ({tolerable}). Checkpoint {tolerable + 1} failed: "
        "Checkpoint was declined. Could not complete snapshot."
    )


def test_a_completion_resets_the_count_of_failures_and_a_savepoint_does_not_count():
    driver = Driver(tolerable_failures=1)
    driver.decline(driver.must_trigger(1000))
    driver.complete(driver.must_trigger(2000))
    assert only(driver.decline(driver.must_trigger(3000)), FailJob) == []
    driver.did(driver.ledger.request(SAVEPOINT))
    declined = driver.decline(driver.must_trigger(3001), message="no room")
    assert only(declined, FailJob) == []
    (answer,) = only(declined, Answer)
    assert answer == Answer("s", None, Reason.CHECKPOINT_DECLINED, "Checkpoint was declined. no room")
    driver.did(driver.ledger.request(SAVEPOINT))
    driver.complete(driver.must_trigger(3002))
    assert driver.ledger.failures == 1, "nor does a savepoint's success"
    assert len(only(driver.decline(driver.must_trigger(4000)), FailJob)) == 1


def test_a_failure_that_does_not_count_does_not_fail_the_job():
    driver = Driver(tolerable_failures=0)
    checkpoint = driver.must_trigger(1000)
    decisions = driver.did(driver.ledger.abort(checkpoint, Reason.TASK_FAILURE, "", 1000))
    assert [type(each) for each in decisions] == [Aborted]


def test_a_decline_of_a_subtask_that_acknowledged_is_ignored():
    driver = Driver()
    checkpoint = driver.must_trigger(1000)
    driver.did(driver.ledger.acknowledge(checkpoint, A))
    assert driver.decline(checkpoint, A) == []
    assert driver.ledger.pending


# -- attempts ---------------------------------------------------------------------------------------------------------


def test_ids_go_on_over_restarts_and_after_a_restored_checkpoint():
    driver = Driver(CompletedCheckpoint(41, Kind.CHECKPOINT, "elsewhere/chk-41", 0))
    assert driver.must_trigger(1000) == 42
    driver.did(driver.ledger.attempt_failed("slot 1 died"))
    driver.did(driver.ledger.attempt_started(2000, driver.ledger.restore_point))
    assert driver.ledger.restore_point == CompletedCheckpoint(41, Kind.CHECKPOINT, "elsewhere/chk-41", 0)
    assert driver.must_trigger(3000) == 43
    assert Driver(last_id=99).must_trigger(1000) == 100


def test_deltas_are_based_on_a_restored_checkpoint_only_if_the_run_made_it():
    driver = Driver(CompletedCheckpoint(41, Kind.CHECKPOINT, "elsewhere/chk-41", 0))
    assert driver.ledger.base_id is None
    driver.complete(driver.must_trigger(1000))
    driver.did(driver.ledger.attempt_failed())
    driver.did(driver.ledger.attempt_started(2000, driver.ledger.restore_point))
    assert driver.ledger.base_id == 42


def test_a_damaged_checkpoint_is_forgotten_when_an_older_one_is_restored():
    driver = Driver(num_retained=3)
    for n in (1, 2, 3):
        driver.complete(driver.must_trigger(1000 * n))
    driver.did(driver.ledger.attempt_failed())
    driver.ledger = driver.ledger.went_back(driver.ledger.completed[1])
    driver.did(driver.ledger.attempt_started(5000, driver.ledger.restore_point))
    assert [each.id for each in driver.ledger.completed] == [1, 2]
    assert (driver.ledger.base_id, driver.ledger.last_id) == (2, 3)


def test_a_checkpoint_of_another_run_replaces_all_own_ones_after_damage():
    driver = Driver()
    driver.complete(driver.must_trigger(1000))
    driver.did(driver.ledger.attempt_failed())
    driver.ledger = driver.ledger.went_back(None)
    assert (driver.ledger.restore_point, driver.ledger.completed) == (None, ())
    elsewhere = CompletedCheckpoint(1, Kind.CHECKPOINT, "elsewhere/chk-1", 0)
    driver.did(driver.ledger.attempt_started(5000, elsewhere))
    assert (driver.ledger.base_id, driver.must_trigger(6000)) == (None, 2)


def test_ids_are_numbered_above_another_drivers_ids():
    driver = Driver()
    driver.ledger = driver.ledger.numbered_above(7).numbered_above(5)
    assert driver.must_trigger(1000) == 8


def test_a_failed_attempt_aborts_pending_checkpoints_and_notifies_no_task():
    driver = Driver(tolerable_failures=0)
    checkpoint = driver.must_trigger(1000)
    driver.did(driver.ledger.request(SAVEPOINT))
    savepoint = driver.must_trigger(1001)
    decisions = driver.did(driver.ledger.attempt_failed("slot 1 died"))
    assert [each.id for each in only(decisions, Aborted)] == [checkpoint, savepoint]
    assert all(not each.notify and each.reason is Reason.JOB_FAILOVER_REGION for each in only(decisions, Aborted))
    assert [each.token for each in only(decisions, Answer)] == ["s"]
    assert only(decisions, FailJob) == []
    assert driver.trigger(10**6) is None
    assert driver.ledger.next_wake_ms(10**6) is None


def test_a_checkpoint_that_is_published_while_the_attempt_fails_counts():
    driver = Driver()
    checkpoint = driver.must_trigger(1000)
    driver.acknowledge_all(checkpoint)
    assert driver.did(driver.ledger.attempt_failed()) == []
    with pytest.raises(AssertionError, match="outcome of a publication"):
        driver.ledger.attempt_started(2000)
    decisions = driver.did(driver.ledger.published(checkpoint, "chk-1", 1500))
    assert only(decisions, NotifyComplete) == [], "no task is running; the restore commits"
    assert driver.ledger.restore_point is not None
    driver.did(driver.ledger.attempt_started(2000, driver.ledger.restore_point))
    assert driver.ledger.base_id == checkpoint


def test_a_checkpoint_that_is_published_while_the_job_ends_is_deleted_with_the_others():
    driver = Driver()
    checkpoint = driver.must_trigger(1000)
    driver.acknowledge_all(checkpoint)
    assert driver.did(driver.ledger.job_ended(JobStatus.CANCELED)) == []
    decisions = driver.did(driver.ledger.published(checkpoint, "chk-1", 1500))
    assert [[each.id for each in discard.checkpoints] for discard in only(decisions, Discard)] == [[1]]


def test_after_a_restart_the_interval_begins_anew():
    driver = Driver()
    driver.did(driver.ledger.attempt_failed())
    driver.did(driver.ledger.attempt_started(50_000))
    assert driver.trigger(50_999) is None
    assert driver.must_trigger(51_000) == 1


def test_an_acknowledgement_of_a_foreign_subtask_is_our_bug():
    driver = Driver()
    checkpoint = driver.must_trigger(1000)
    with pytest.raises(AssertionError, match="no subtask"):
        driver.ledger.acknowledge(checkpoint, (7, 7))
