"""Tests that a changed program takes the state of its former versions: without Spark, in the test's own process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from rekindle.clock import Clock
from rekindle.coordinator.failure_messages import task_failed
from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment
from rekindle.errors import IncompatibleStateError
from rekindle.runtime.failure_report import describe_failure
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.in_process_checkpoint import InProcessCheckpoint
from rekindle.testing.survival import Build

_CHECKPOINT_INTERVAL_MS = 1000
_T = TypeVar("_T")


def assert_evolves(
    old_program: Build,
    new_program: Build,
    *later_programs: Build,
    parallelism: int = 2,
    records_per_epoch: int = 3,
    epochs: int = 2,
    clock: Callable[[], Clock] | None = None,
    allow_non_restored_state: bool = False,
) -> list[Any]:
    """Assert that a changed program goes on from the state of the old one; return what the last program collects.

    Each program is a function that builds it on a new environment, from bounded sources, and returns a stream. The old
    one runs for some epochs, and stops with a savepoint; the new one goes on from it, to the end of the input. With
    more programs each goes on from the one before. The same is done with checkpoints: those of later programs are
    deltas on top of the earlier programs' state. A program that is refused fails with the sentence of the refusal.

    `records_per_epoch` is the number of records per epoch and source subtask, `epochs` how many epochs each program
    runs before the next one takes over. `allow_non_restored_state` drops the state of operators that are gone.

    >>> from rekindle.common import Types
    >>> from rekindle.datastream import KeyedProcessFunction
    >>> from rekindle.datastream.state import ValueStateDescriptor
    >>> class Sum(KeyedProcessFunction):
    ...     def __init__(self, type_info):
    ...         self.type_info = type_info
    ...     def open(self, runtime_context):
    ...         self.sum = runtime_context.get_state(ValueStateDescriptor("sum", self.type_info))
    ...     def process_element(self, value, ctx):
    ...         self.sum.update((self.sum.value() or 0) + value)
    ...         yield self.sum.value()
    >>> def sums(type_info):
    ...     return lambda env: env.from_collection([1, 2, 3, 4]).key_by(lambda n: 0, int).process(Sum(type_info))
    >>> assert_evolves(sums(Types.INT()), sums(Types.DOUBLE()), records_per_epoch=1, parallelism=1)
    [6.0, 10.0]
    >>> assert_evolves(sums(Types.INT()), sums(Types.STRING()), records_per_epoch=1, parallelism=1)
    Traceback (most recent call last):
    AssertionError: Operator 'KEYED PROCESS' of job 'test' cannot take its state: State 'sum': each value was saved ...
    """
    programs = [old_program, new_program, *later_programs]
    runs = _Runs(parallelism, records_per_epoch, epochs, clock, allow_non_restored_state)
    collected = runs.one_after_another(programs, savepoints=True)
    runs.one_after_another(programs, savepoints=False)
    return collected


class _Runs:
    def __init__(
        self,
        parallelism: int,
        records_per_epoch: int,
        epochs: int,
        clock: Callable[[], Clock] | None,
        allow_non_restored_state: bool,
    ) -> None:
        self._parallelism = parallelism
        self._records_per_epoch = records_per_epoch
        self._epochs = epochs
        self._clock = clock
        self._allow = allow_non_restored_state

    def one_after_another(self, programs: Sequence[Build], *, savepoints: bool) -> list[Any]:
        """Run each program on the state of the one before; return what the last one collects."""
        taken: InProcessCheckpoint | None = None
        for build in programs[:-1]:
            taken = _unless_refused(partial(self._interrupted, build, taken, savepoints))
        return _unless_refused(lambda: self._job(programs[-1], taken).run())

    def _interrupted(self, build: Build, restore: InProcessCheckpoint | None, savepoint: bool) -> InProcessCheckpoint:
        job = self._job(build, restore)
        for _ in range(self._epochs - 1):
            job.checkpoint()
        taken = job.checkpoint(savepoint=savepoint)
        assert taken.manifest is not None  # the first access writes the checkpoint
        job.kill()
        return taken

    def _job(self, build: Build, restore: InProcessCheckpoint | None) -> InProcessJob:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(self._parallelism)
        env.enable_checkpointing(_CHECKPOINT_INTERVAL_MS)
        allowed = str(self._allow).lower()
        env.get_configuration().set_string("execution.state-recovery.ignore-unclaimed-state", allowed)
        clock = self._clock() if self._clock is not None else None
        return InProcessJob.of(build(env), clock, self._records_per_epoch, restore)


def _unless_refused(run: Callable[[], _T]) -> _T:
    """Run; a refusal of restored state becomes an AssertionError with the sentence that a job on Spark would show."""
    try:
        return run()
    except IncompatibleStateError as refusal:
        raise AssertionError(str(refusal)) from None
    except OperatorFailure as failure:
        if not isinstance(failure.__cause__, IncompatibleStateError):
            raise
        raise AssertionError(str(task_failed("test", describe_failure("test", None, failure)))) from None
