"""The execution mode of a job: streaming or batch."""

from __future__ import annotations

from enum import Enum


class RuntimeExecutionMode(Enum):
    """Streaming (the default), batch (bounded sources only), or automatic: batch if every source is bounded.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> _ = env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
