"""When the next checkpoint may be triggered, and which kind is due; `test_ledger.py` has the same in a job's life."""

from __future__ import annotations

from rekindle.coordinator.checkpoints.schedule import Schedule
from rekindle.coordinator.checkpoints.types import CheckpointKind, CheckpointRequest
from rekindle.graph.settings import CheckpointPolicy

POLICY = CheckpointPolicy(interval_ms=1000, min_pause_ms=300, max_concurrent=1)
BY_HAND = CheckpointRequest("h", CheckpointKind.CHECKPOINT)
SAVEPOINT = CheckpointRequest("s", CheckpointKind.SAVEPOINT)
BEGUN = Schedule().begun(POLICY, 0)


def test_a_periodic_checkpoint_is_due_after_interval_and_pause() -> None:
    assert BEGUN.due_now(POLICY, (), 0, 999) is None
    assert BEGUN.due_now(POLICY, (), 0, 1000) == (CheckpointKind.CHECKPOINT, None)
    paused = BEGUN.after_completion(900)
    assert paused.due_now(POLICY, (), 0, 1199) is None
    assert paused.due_now(POLICY, (), 0, 1200) == (CheckpointKind.CHECKPOINT, None)


def test_the_rate_is_fixed_unless_a_start_was_late_by_a_whole_interval() -> None:
    assert BEGUN.after_periodic(POLICY, 1999).due_ms == 2000
    assert BEGUN.after_periodic(POLICY, 2000).due_ms == 3000


def test_as_many_as_allowed_hold_back_all_but_savepoints() -> None:
    assert BEGUN.next_turn_ms(POLICY, (BY_HAND,), 1, 5000) is None
    assert BEGUN.is_held_back(POLICY, 1, 1000)
    assert not BEGUN.is_held_back(POLICY, 1, 999)
    assert not BEGUN.is_held_back(POLICY, 0, 1000)
    assert BEGUN.due_now(POLICY, (BY_HAND, SAVEPOINT), 1, 0) == (CheckpointKind.SAVEPOINT, SAVEPOINT)


def test_a_request_goes_before_the_final_checkpoint_which_waits_for_no_interval() -> None:
    ended = BEGUN.with_final(10)
    assert ended.due_now(POLICY, (BY_HAND,), 0, 10) == (CheckpointKind.CHECKPOINT, BY_HAND)
    assert ended.due_now(POLICY, (), 1, 10) == (CheckpointKind.FINAL, None)
    assert ended.begun(POLICY, 20).next_turn_ms(POLICY, (), 0, 20) == 1020
