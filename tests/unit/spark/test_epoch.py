"""An epoch's description on Spark's web page."""

from __future__ import annotations

from rekindle.coordinator.cluster import EpochRun
from rekindle.protocol import CheckpointOrder
from rekindle.spark.epoch import describe


def test_a_description_names_job_epoch_and_checkpoint() -> None:
    run = EpochRun("id", "orders", 1, 12, ("a",), (), b"", 1, 1)
    assert describe(run) == "orders · epoch 12"
    with_checkpoint = EpochRun("id", "orders", 1, 12, ("a",), (), b"", 1, 1, checkpoint=CheckpointOrder(3, 0))
    assert describe(with_checkpoint) == "orders · epoch 12 · checkpoint 3"
