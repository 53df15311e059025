"""For tests of jobs: run a program in this process, without Spark, slots or threads, on a clock that you move."""

from __future__ import annotations

from rekindle.testing.in_process import InProcessJob
from rekindle.testing.in_process_checkpoint import InProcessCheckpoint, StoredCheckpoint
from rekindle.testing.manual_clock import ManualClock
from rekindle.testing.survival import assert_survives

__all__ = ["InProcessCheckpoint", "InProcessJob", "ManualClock", "StoredCheckpoint", "assert_survives"]
