"""What every sink that promises exactly once must do, as tests: run them on a sink of your own (I18).

A subclass in your tests says which sink, and how to read what others can see of its output; pytest finds the rest:

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
    """A sink and its readers. Each test gets one whose output is empty."""

    #: A `Sink`, or a sink function that commits in two phases; asked for once per run, as a program makes it.
    make: Callable[[], Any]
    #: The records that a reader outside sees now, in any order.
    visible: Callable[[], Iterable[Any]]
    #: What is written; `visible` gives back equal records.
    records: Sequence[Any] = field(default_factory=lambda: list(range(24)))


#: The run's own is 2.
at_each_parallelism = pytest.mark.parametrize("parallelism", [2, 1, 3])


class SinkContract:
    """The contract of a two-phase sink, on jobs in this process; the sink is made and shipped as on Spark.

    >>> SinkContract.RECORDS_PER_EPOCH
    3
    """

    #: Per epoch and subtask of the source: so few that there are several epochs.
    RECORDS_PER_EPOCH: ClassVar[int] = 3

    # -- visible when the checkpoint is complete, not before -----------------------------------------------------------

    def test_nothing_is_visible_before_its_checkpoint_is_complete(self, sink: SinkUnderTest) -> None:
        """Neither what was written nor what was pre-committed; and only what stands before the barrier after that."""
        job = self._job(sink)
        job.epoch()
        checkpoint = job.checkpoint(complete=False)
        covered = self._covered(job)
        job.epoch()
        assert _seen(sink) == Counter()
        job.complete(checkpoint)
        assert sum(_seen(sink).values()) == covered
        job.run()
        _assert_all_once(sink)

    def test_an_aborted_checkpoint_commits_nothing_and_the_next_one_all(self, sink: SinkUnderTest) -> None:
        """As if it had never been triggered (I19)."""
        job = self._job(sink)
        job.abort(job.checkpoint(complete=False))
        assert _seen(sink) == Counter()
        job.checkpoint()
        assert sum(_seen(sink).values()) == self._covered(job)
        job.run()
        _assert_all_once(sink)

    def test_what_a_savepoint_pre_commits_is_committed_by_the_next_checkpoint(self, sink: SinkUnderTest) -> None:
        """Savepoints in between neither notify nor commit (I17)."""
        job = self._job(sink)
        job.checkpoint(savepoint=True)
        assert _seen(sink) == Counter()
        job.checkpoint()
        assert sum(_seen(sink).values()) == self._covered(job)
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
        """The process died between publishing and telling; its directory is gone. Before any new record, and once."""
        job = self._job(sink)
        job.epoch()
        checkpoint = job.checkpoint(complete=False)
        covered = self._covered(job)
        self._die(job, checkpoint)
        restored = self._job(sink, parallelism, checkpoint)
        assert sum(_seen(sink).values()) == covered
        restored.run()
        _assert_all_once(sink)

    @at_each_parallelism
    def test_committing_twice_is_committing_once(self, sink: SinkUnderTest, parallelism: int) -> None:
        """The process died after it had committed: the restored one commits the same again."""
        job = self._job(sink)
        checkpoint = job.checkpoint()
        committed = _seen(sink)
        self._die(job, checkpoint)
        restored = self._job(sink, parallelism, checkpoint)
        assert _seen(sink) == committed
        self._die(restored, None)
        self._job(sink, parallelism, checkpoint).run()
        _assert_all_once(sink)

    @at_each_parallelism
    def test_what_was_staged_by_a_lost_attempt_never_becomes_visible(
        self, sink: SinkUnderTest, parallelism: int
    ) -> None:
        """Written and pre-committed after the checkpoint that is restored: it is written again by the new attempt."""
        job = self._job(sink)
        checkpoint = job.checkpoint()
        job.epoch()
        job.checkpoint(complete=False)
        job.epoch()
        self._die(job, checkpoint)
        self._job(sink, parallelism, checkpoint).run()
        _assert_all_once(sink)

    def test_what_waits_survives_every_change_of_parallelism(self, sink: SinkUnderTest) -> None:
        """From one parallelism to the next, dead before the commit each time."""
        job = self._job(sink)
        for parallelism in (1, 3, 2):
            checkpoint = job.checkpoint(complete=False)
            self._die(job, checkpoint)
            job = self._job(sink, parallelism, checkpoint)
        job.run()
        _assert_all_once(sink)

    @at_each_parallelism
    def test_a_restore_from_the_final_checkpoint_only_commits(self, sink: SinkUnderTest, parallelism: int) -> None:
        """The input had ended: nothing is written any more, what waits is committed (I9)."""
        job = self._job(sink)
        while not job.finished:
            job.epoch()
        final = job.checkpoint(complete=False)
        assert _seen(sink) == Counter()
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
        """How many records the job has brought to the sink so far."""
        return sum(task._records_sunk() for task in job.tasks.values())

    def _die(self, job: InProcessJob, checkpoint: InProcessCheckpoint | None) -> None:
        """Published, and then the process is gone, with its private directory."""
        if checkpoint is not None:
            assert checkpoint.manifest is not None
        job.kill()


def _seen(sink: SinkUnderTest) -> Counter[str]:
    return Counter(map(repr, sink.visible()))


def _assert_all_once(sink: SinkUnderTest) -> None:
    seen, expected = _seen(sink), Counter(map(repr, sink.records))
    assert seen == expected, f"missing {dict(expected - seen)}, more often than written {dict(seen - expected)}"
