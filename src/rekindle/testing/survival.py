"""Tests that a program survives failures: run it clean, killed, and restored at another parallelism; compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rekindle.clock import Clock
from rekindle.datastream.data_stream import DataStream
from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.in_process_checkpoint import InProcessCheckpoint

Build = Callable[[StreamExecutionEnvironment], DataStream]
_CHECKPOINT_INTERVAL_MS = 1000


def assert_survives(
    build: Build,
    *,
    parallelism: int = 2,
    parallelisms: Sequence[int] = (1, 2, 3),
    records_per_epoch: int = 3,
    cuts: Sequence[int] | None = None,
    clock: Callable[[], Clock] | None = None,
) -> list[Any]:
    """Assert that a program has the same output however often it is killed; return the output of the clean run.

    `build(env)` builds the program on a new environment, from bounded sources, and returns the stream to compare. The
    records are compared as multisets: their order after an exchange depends on the cuts (I1), so the program's output
    must not depend on it. Sinks write again after each restore, as on Spark: compare their output with `InProcessJob`.

    The clean run has `parallelism`. Then, for each cut (a number of epochs; by default at the start, in the middle,
    before the end and at it) and each of `parallelisms`, a run takes a checkpoint with every epoch up to the cut, so
    that the later ones are deltas, and is killed one epoch later. It is restored at the new parallelism, takes a
    checkpoint, is killed one epoch later again, and is restored at its first parallelism. For sources that cannot
    change their parallelism give `parallelisms=(parallelism,)`.

    `records_per_epoch` is the number of records per epoch and source subtask: small, so that there are several epochs.
    `clock` makes the clock of each run (by default one that stands still).

    >>> def sums(env):
    ...     numbers = env.from_collection([(n % 3, n) for n in range(20)])
    ...     return numbers.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    >>> max(assert_survives(sums, parallelism=1, parallelisms=[1, 2]))
    (2, 57)

    A program that keeps its state outside of checkpoints does not survive:

    >>> from rekindle.datastream import MapFunction
    >>> class Numbered(MapFunction):
    ...     seen = 0
    ...     def map(self, value):
    ...         self.seen += 1
    ...         return self.seen
    >>> assert_survives(lambda env: env.from_collection(list(range(20))).map(Numbered()))
    Traceback (most recent call last):
    AssertionError: cut after epoch 1, restored with parallelism 1 instead of 2: missing ..., not expected ...
    """
    runs = _Runs(build, records_per_epoch, clock)
    expected, epochs = runs.clean(parallelism)
    for cut in cuts if cuts is not None else _default_cuts(epochs):
        assert 1 <= cut <= epochs, f"the clean run has {epochs} epochs: it cannot be cut after epoch {cut}"
        for restored in parallelisms:
            difference = _difference(expected, runs.killed_twice(parallelism, cut, restored))
            assert not difference, f"cut after epoch {cut}, {_restored_with(restored, parallelism)}: {difference}"
    return expected


class _Runs:
    """Runs of one program."""

    def __init__(self, build: Build, records_per_epoch: int, clock: Callable[[], Clock] | None) -> None:
        self._build = build
        self._records_per_epoch = records_per_epoch
        self._clock = clock

    def _job(self, parallelism: int, restore: InProcessCheckpoint | None = None) -> InProcessJob:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
        env.enable_checkpointing(_CHECKPOINT_INTERVAL_MS)
        clock = self._clock() if self._clock is not None else None
        return InProcessJob.of(self._build(env), clock, self._records_per_epoch, restore)

    def clean(self, parallelism: int) -> tuple[list[Any], int]:
        """Run the program undisturbed; return its output and the number of epochs."""
        job = self._job(parallelism)
        collected: list[Any] = []
        epochs = 0
        while not job.finished:
            collected.extend(job.epoch())
            epochs += 1
        collected.extend(job.run())
        return collected, epochs

    def killed_twice(self, parallelism: int, cut: int, restored: int) -> list[Any]:
        """Run the program with two kills; return the output up to the checkpoints and that of the last restore."""
        job = self._job(parallelism)
        collected: list[Any] = []
        for _ in range(cut):
            checkpoint = job.checkpoint()
            collected.extend(checkpoint.results)
        _lose_an_epoch(job)
        job = self._job(restored, checkpoint)
        checkpoint = job.checkpoint()
        collected.extend(checkpoint.results)
        _lose_an_epoch(job)
        collected.extend(self._job(parallelism, checkpoint).run())
        return collected


def _restored_with(restored: int, parallelism: int) -> str:
    change = "again" if restored == parallelism else f"instead of {parallelism}"
    return f"restored with parallelism {restored} {change}"


def _lose_an_epoch(job: InProcessJob) -> None:
    job.epoch()
    job.kill()


def _default_cuts(epochs: int) -> list[int]:
    """Return the first epoch, the middle one, the last but one and the last."""
    return sorted({1, (epochs + 1) // 2, max(1, epochs - 1), epochs})


def _difference(expected: Sequence[Any], found: Sequence[Any]) -> str:
    """Return the missing and the unexpected records; empty if the multisets are equal. Records may be unhashable."""
    wanted, got = Counter(map(repr, expected)), Counter(map(repr, found))
    if wanted == got:
        return ""
    return f"missing {_shortened(wanted - got)}, not expected {_shortened(got - wanted)}"


def _shortened(records: Counter[str], most: int = 5) -> str:
    shown = sorted(records.elements())
    rest = f" and {len(shown) - most} more" if len(shown) > most else ""
    return f"[{', '.join(shown[:most])}]{rest}"
