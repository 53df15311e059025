"""Replays a recorded failure in a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rekindle.checkpoint.recordings import Recording
from rekindle.checkpoint.store.port import Store
from rekindle.datastream.data_stream import DataStream
from rekindle.graph.shipping import CopiedJob
from rekindle.replay import ReplayOutcome, Trace, find_recording
from rekindle.replay.job_code import plan_for
from rekindle.replay.replay import ReplayOptions
from rekindle.replay.replay import replay as replay_recording


@contextmanager
def replay(
    recording: Recording | str,
    stream: DataStream,
    *,
    checkpoint: int | None = None,
    store: Store | None = None,
    trace: Trace | None = None,
    with_sinks: bool = False,
) -> Iterator[ReplayOutcome]:
    """Replay a recorded failure of the job that `stream.execute_and_collect()` would run; `store` has its checkpoints.

    `recording` is an `InProcessJob.recording`, or the path of one that a job on Spark has left.

    >>> from rekindle.common import Configuration
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> from rekindle.testing import InProcessJob
    >>> def quotients():
    ...     configuration = Configuration.from_dict({"rekindle.replay.record-input": "true"})
    ...     env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    ...     return env.from_collection([4, 2, 0, 1]).map(lambda n: 8 // n)
    >>> job = InProcessJob.of(quotients())
    >>> try:
    ...     job.run()
    ... except Exception:
    ...     job.kill()
    >>> with replay(job.recording, quotients()) as outcome:
    ...     print(outcome.operator, outcome.record, repr(outcome.cause))
    Map 0 ZeroDivisionError('integer division or modulo by zero')
    """
    found = find_recording(recording).recording if isinstance(recording, str) else recording
    program = stream._env._program(found.job_name, stream._collect())
    stream._env.close()
    plan = plan_for(found, program)
    options = ReplayOptions(checkpoint, with_sinks, trace, store=store)
    with replay_recording(found, plan, CopiedJob(plan), options) as outcome:
        yield outcome
