"""The contract of sinks that promise exactly once, as tests: run them on a sink of your own (I18).

A subclass in your tests names the sink and reads its visible output; pytest finds the tests:

    class TestMySink(SinkContract):
        @pytest.fixture
        def sink(self, tmp_path):
            return SinkUnderTest(lambda: MySink(tmp_path), lambda: read_all(tmp_path))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment
from rekindle.graph.build import build_plan
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.in_process_checkpoint import InProcessCheckpoint


@dataclass(frozen=True)
class SinkUnderTest:
    """A sink and the reader of its output. Each test gets one whose output is empty."""

    #: Makes a `Sink`, or a sink function that commits in two phases; called once per run, as a program would.
    make: Callable[[], Any]
    #: Returns the records that an outside reader sees now, in any order.
    visible: Callable[[], Iterable[Any]]
    #: The records to write; `visible` returns equal records.
    records: Sequence[Any] = field(default_factory=lambda: list(range(24)))


#: The first run has parallelism 2.
at_each_parallelism = pytest.mark.parametrize("parallelism", [2, 1, 3])


class SinkContract:
    """The contract of a two-phase sink, tested with jobs in this process; the sink is made and shipped as on Spark.

    >>> SinkContract.RECORDS_PER_EPOCH
    3
    """

    #: Records per epoch and source subtask: few, so that there are several epochs.
    RECORDS_PER_EPOCH: ClassVar[int] = 3

    # -- visible when the checkpoint is complete, not before -----------------------------------------------------------

    def test_nothing_is_visible_before_its_checkpoint_is_complete(self, sink: SinkUnderTest) -> None:
        """Neither written nor pre-committed records are visible; after the commit only those before the barrier are."""
        job = self._job(sink)
        job.epoch()
        checkpoint = job.checkpoint(complete=False)
        covered = self._covered(job)
        job.epoch()
        assert _visible_counts(sink) == Counter()
        job.complete(checkpoint)
        assert sum(_visible_counts(sink).values()) == covered
        job.run()
        _assert_all_once(sink)

    def test_an_aborted_checkpoint_commits_nothing_and_the_next_one_all(self, sink: SinkUnderTest) -> None:
        """The sink behaves as if the aborted checkpoint had never been triggered (I19)."""
        job = self._job(sink)
        job.abort(job.checkpoint(complete=False))
        assert _visible_counts(sink) == Counter()
        job.checkpoint()
        assert sum(_visible_counts(sink).values()) == self._covered(job)
        job.run()
        _assert_all_once(sink)

    def test_what_a_savepoint_pre_commits_is_committed_by_the_next_checkpoint(self, sink: SinkUnderTest) -> None:
        """A savepoint neither notifies nor commits (I17)."""
        job = self._job(sink)
        job.checkpoint(savepoint=True)
        assert _visible_counts(sink) == Counter()
        job.checkpoint()
        assert sum(_visible_counts(sink).values()) == self._covered(job)
        job.run()
        _assert_all_once(sink)

    def test_every_record_is_visible_at_the_end(self, sink: SinkUnderTest) -> None:
        """The final checkpoint commits the rest (I9); a job without checkpoints commits at its end."""
        job = self._job(sink, checkpointed=False)
        job.run()
        _assert_all_once(sink)

    # -- after a failure -----------------------------------------------------------------------------------------------

    @at_each_parallelism
    def test_a_restore_commits_what_the_checkpoint_holds(self, sink: SinkUnderTest, parallelism: int) -> None:
        """The process died between publishing and notifying, its directory is gone: the restore commits, once."""
        job = self._job(sink)
        job.epoch()
        checkpoint = job.checkpoint(complete=False)
        covered = self._covered(job)
        self._die(job, checkpoint)
        restored = self._job(sink, parallelism, checkpoint)
        assert sum(_visible_counts(sink).values()) == covered
        restored.run()
        _assert_all_once(sink)

    @at_each_parallelism
    def test_committing_twice_is_committing_once(self, sink: SinkUnderTest, parallelism: int) -> None:
        """The process died after the commit: the restored job commits the same again."""
        job = self._job(sink)
        checkpoint = job.checkpoint()
        committed = _visible_counts(sink)
        self._die(job, checkpoint)
        restored = self._job(sink, parallelism, checkpoint)
        assert _visible_counts(sink) == committed
        self._die(restored, None)
        self._job(sink, parallelism, checkpoint).run()
        _assert_all_once(sink)

    @at_each_parallelism
    def test_what_was_staged_by_a_lost_attempt_never_becomes_visible(
        self, sink: SinkUnderTest, parallelism: int
    ) -> None:
        """Records written and pre-committed after the restored checkpoint are written again by the new attempt."""
        job = self._job(sink)
        checkpoint = job.checkpoint()
        job.epoch()
        job.checkpoint(complete=False)
        job.epoch()
        self._die(job, checkpoint)
        self._job(sink, parallelism, checkpoint).run()
        _assert_all_once(sink)

    def test_what_waits_survives_every_change_of_parallelism(self, sink: SinkUnderTest) -> None:
        """The job dies before the commit at each parallelism in turn."""
        job = self._job(sink)
        for parallelism in (1, 3, 2):
            checkpoint = job.checkpoint(complete=False)
            self._die(job, checkpoint)
            job = self._job(sink, parallelism, checkpoint)
        job.run()
        _assert_all_once(sink)

    @at_each_parallelism
    def test_a_restore_from_the_final_checkpoint_only_commits(self, sink: SinkUnderTest, parallelism: int) -> None:
        """The input had ended: the restored job writes nothing and commits the pending records (I9)."""
        job = self._job(sink)
        while not job.finished:
            job.epoch()
        final = job.checkpoint(complete=False)
        assert _visible_counts(sink) == Counter()
        self._die(job, final)
        restored = self._job(sink, parallelism, final)
        _assert_all_once(sink)
        restored.run()
        _assert_all_once(sink)

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def _job(
        self,
        sink: SinkUnderTest,
        parallelism: int = 2,
        restore: InProcessCheckpoint | None = None,
        *,
        checkpointed: bool = True,
    ) -> InProcessJob:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        if checkpointed:
            env.enable_checkpointing(1000)
        stream = env.from_collection(list(sink.records))
        made = sink.make()
        ended = stream.sink_to(made) if hasattr(made, "create_writer") else stream.add_sink(made)
        ended.uid("sink")
        plan = build_plan(env._program("sink contract"))
        env.close()
        return InProcessJob(plan, max_records=self.RECORDS_PER_EPOCH, restore=restore)

    def _covered(self, job: InProcessJob) -> int:
        """Return how many records have reached the sink so far."""
        return sum(task._records_sunk() for task in job.tasks.values())

    def _die(self, job: InProcessJob, checkpoint: InProcessCheckpoint | None) -> None:
        """Publish the checkpoint, then end the process with its private directory."""
        if checkpoint is not None:
            assert checkpoint.manifest is not None
        job.kill()


def _visible_counts(sink: SinkUnderTest) -> Counter[str]:
    return Counter(map(repr, sink.visible()))


def _assert_all_once(sink: SinkUnderTest) -> None:
    seen, expected = _visible_counts(sink), Counter(map(repr, sink.records))
    assert seen == expected, f"missing {dict(expected - seen)}, more often than written {dict(seen - expected)}"
