"""Runs a failed task again in this process, without Spark, from its checkpoint and recorded input (decision 0027).

`find_recording` finds what was recorded, `replay` runs it, `debug` opens `pdb` where it failed.
"""

from __future__ import annotations

from rekindle.replay.debugger import debug
from rekindle.replay.find_recording import StoredRecording, find_recording
from rekindle.replay.key_trace import Trace
from rekindle.replay.replay import ReplayOutcome, replay

__all__ = ["ReplayOutcome", "StoredRecording", "Trace", "debug", "find_recording", "replay"]
