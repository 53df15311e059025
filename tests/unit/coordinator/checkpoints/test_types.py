"""The tables and the policy that the checkpoint ledger decides by."""

from __future__ import annotations

from rekindle.common.configuration import Configuration
from rekindle.coordinator.checkpoints.types import (
    TRANSITIONS,
    CheckpointFailureReason,
    CheckpointState,
)
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.graph.settings import JobSettings

Reason = CheckpointFailureReason


def test_every_state_has_a_row_and_the_ends_lead_nowhere():
    assert set(TRANSITIONS) == set(CheckpointState)
    assert {state for state, following in TRANSITIONS.items() if not following} == {
        CheckpointState.COMPLETED,
        CheckpointState.ABORTED,
    }


def test_the_reasons_have_flinks_texts_and_count_as_in_flink():
    assert Reason.CHECKPOINT_SUBSUMED.text == "Checkpoint has been subsumed."
    assert Reason.IO_EXCEPTION.text == "An Exception occurred while triggering the checkpoint. IO-problem detected."
    assert {reason.name for reason in Reason if reason.counts} == {
        "IO_EXCEPTION",
        "CHECKPOINT_ASYNC_EXCEPTION",
        "CHECKPOINT_EXPIRED",
        "CHECKPOINT_DECLINED",
        "FINALIZE_CHECKPOINT_FAILURE",
    }


def test_the_policy_comes_from_the_plans_settings():
    settings = JobSettings.of(
        Configuration.from_dict(
            {
                "execution.checkpointing.interval": "30 s",
                "execution.checkpointing.min-pause": "500 ms",
                "execution.checkpointing.max-concurrent-checkpoints": 2,
                "execution.checkpointing.tolerable-failed-checkpoints": 3,
                "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            }
        )
    )
    policy = settings.checkpoints
    assert (policy.interval_ms, policy.timeout_ms, policy.min_pause_ms) == (30_000, 600_000, 500)
    assert (policy.max_concurrent, policy.tolerable_failures, policy.num_retained) == (2, 3, 1)
    assert policy.retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
