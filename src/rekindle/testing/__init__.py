"""Test kit for jobs: runs a program in the test process, without Spark, slots or threads, on a clock for tests."""

from __future__ import annotations

from rekindle.testing.evolving import assert_evolves
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.in_process_checkpoint import InProcessCheckpoint, StoredCheckpoint
from rekindle.testing.manual_clock import ManualClock
from rekindle.testing.replaying import replay
from rekindle.testing.survival import assert_survives

__all__ = [
    "InProcessCheckpoint",
    "InProcessJob",
    "ManualClock",
    "StoredCheckpoint",
    "assert_evolves",
    "assert_survives",
    "replay",
]
