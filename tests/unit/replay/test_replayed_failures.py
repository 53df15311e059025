"""A replay fails as the task did: the same exception at the same record, with the same state (I1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rekindle.common import Configuration, Duration, Time, Types, WatermarkStrategy
from rekindle.datastream import (
    CheckpointListener,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.state.described_states import values_of
from rekindle.testing import InProcessJob, ManualClock, replay

Build = Callable[[], DataStream]
ORDERS = [(f"user-{n % 5}", n) for n in range(60)]


class JumpingClock(ManualClock):
    """A clock on which time passes with each look: whoever looks more or less often sees other times."""

    def wall_ms(self) -> int:
        self.advance(3)
        return super().wall_ms()

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()


class Totals(KeyedProcessFunction):
    """Keeps all kinds of state, and fails at a total."""

    def __init__(self, limit: int, timers: bool = False) -> None:
        self.limit = limit
        self.timers = timers

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.by_digit = runtime_context.get_map_state(MapStateDescriptor("by digit", Types.LONG(), Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        total = (self.total.value() or 0) + value[1]
        self.total.update(total)
        self.seen.add(value[1])
        self.by_digit.put(value[1] % 10, ctx.timer_service().current_processing_time())
        if self.timers:
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 40)
        if not self.timers and total > self.limit:
            raise ValueError(f"{ctx.get_current_key()} has {total}, at {sorted(self.by_digit.items())}")
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        total = self.total.value() or 0
        if total > self.limit:
            raise ValueError(f"timer {timestamp} of {ctx.get_current_key()}: {total}, {list(self.seen.get())}")
        self.seen.add(-timestamp)
        yield from ()


def environment(parallelism: int = 1, **settings: str) -> StreamExecutionEnvironment:
    keys = {"rekindle.replay.record-input": "true", **{key.replace("_", "."): settings[key] for key in settings}}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(keys))
    return env.set_parallelism(parallelism).enable_checkpointing(1000)


def totals(limit: int, parallelism: int = 1, timers: bool = False, backend: str = "hashmap") -> DataStream:
    env = environment(parallelism, state_backend_type=backend)
    keyed = env.from_collection(ORDERS, Types.TUPLE([Types.STRING(), Types.LONG()])).key_by(lambda order: order[0])
    return keyed.process(Totals(limit, timers)).name("totals").uid("totals")


def failed(
    job: InProcessJob, checkpoints: int = 1, epochs: int = 3, leave_after_ms: float | None = None
) -> OperatorFailure:
    """Run the job until it fails, with a checkpoint every few epochs."""
    for number in range(1, 1000):
        try:
            if checkpoints and number % epochs == 0:
                job.checkpoint()
                checkpoints -= 1
            else:
                job.epoch(leave_after_ms)
        except OperatorFailure as failure:
            return failure
    raise AssertionError("the job does not fail")


def same_failure(job: InProcessJob, failure: OperatorFailure, build: Build, **options: Any) -> None:
    """Replay the job's recording and compare; the job is killed."""
    assert job.recording is not None
    with replay(job.recording, build(), store=job.store, **options) as outcome:
        assert repr(outcome.cause) == repr(failure.__cause__)
        assert outcome.operator == failure.operator
        assert (outcome.has_record, outcome.record) == (failure.has_record, failure.record)
    job.kill()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("timers", [False, True], ids=["element", "timer"])
def test_a_keyed_function_fails_again_with_the_same_state(backend: str, timers: bool) -> None:
    def build() -> DataStream:
        return totals(150, timers=timers, backend=backend)

    job = InProcessJob.of(build(), JumpingClock(1_000_000), max_records=7)
    failure = failed(job)
    assert job.recording is not None
    assert job.recording.bases == [1]
    users = [f"user-{n}" for n in range(5)]
    chain = next(chain for chain in job.plan.chains if job.plan.nodes[chain.head].name == "totals")
    operator = job.tasks[chain.id, 0]._operators[chain.head]
    assert operator.context.keyed is not None
    left = {user: values_of(operator.context.keyed, user) for user in users}
    assert any(left.values())
    with replay(job.recording, build(), store=job.store) as outcome:
        assert repr(outcome.cause) == repr(failure.__cause__)
        assert (outcome.checkpoint_id, outcome.record) == (1, failure.record)
        assert {user: outcome.state_of("totals", user) for user in users} == left
    job.kill()


def test_without_the_recorded_times_the_replay_differs() -> None:
    job = InProcessJob.of(totals(150), JumpingClock(1_000_000), max_records=7)
    failure = failed(job)
    assert job.recording is not None
    for segment in job.recording.segments:
        for event in segment.events:
            event.time = type(event.time)()
    with replay(job.recording, totals(150), store=job.store) as outcome:
        assert outcome.record == failure.record
        assert repr(outcome.cause) != repr(failure.__cause__)
    job.kill()


def test_a_subtask_of_a_rescaled_job_fails_again() -> None:
    before = InProcessJob.of(totals(10_000, parallelism=3), max_records=5)
    before.epoch()
    checkpoint = before.checkpoint()
    before.kill()
    job = InProcessJob.of(totals(140, parallelism=2), JumpingClock(5), max_records=4, restore=checkpoint)
    failure = failed(job, checkpoints=0)
    assert job.recording is not None
    assert (job.recording.bases, job.recording.parallelism) == ([checkpoint.id], 2)
    same_failure(job, failure, lambda: totals(140, parallelism=2))


class Sum(ProcessWindowFunction):
    """Fails when a window with a large sum fires."""

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        values = [value for _, value in elements]
        if sum(values) > 50:  # whatever of the records the first window of processing time gets
            raise ValueError(f"{key} in {context.window()}: {values} at {context.current_processing_time()}")
        yield key, sum(values)


def windows(event_time: bool) -> DataStream:
    env = environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    stream = env.from_collection(ORDERS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda order, _: order[1] * 10))
    size = Time.milliseconds(200)
    assigner = TumblingEventTimeWindows.of(size) if event_time else TumblingProcessingTimeWindows.of(size)
    return timed.key_by(lambda order: order[0]).window(assigner).process(Sum()).name("sum")


@pytest.mark.parametrize("event_time", [True, False], ids=["event time", "processing time"])
def test_a_window_fails_again(event_time: bool) -> None:
    job = InProcessJob.of(windows(event_time), JumpingClock(1_000_000), max_records=9)
    same_failure(job, failed(job, epochs=2), lambda: windows(event_time))


class Counted(SourceFunction):
    """Collects with timestamps and watermarks, on its own thread."""

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        for n in range(200):
            ctx.collect_with_timestamp(n, n, offset=n)
            if n % 50 == 49:
                ctx.emit_watermark(n)

    def cancel(self) -> None:
        """Nothing to stop."""


def counted(limit: int = 120) -> DataStream:
    def check(n: int) -> int:
        if n == limit:
            raise ValueError(n)
        return n

    return environment().add_source(Counted(), type_info=Types.LONG()).map(check, Types.LONG()).name("check")


def test_the_output_of_a_source_function_is_replayed_without_the_function() -> None:
    job = InProcessJob.of(counted(), max_records=30)
    same_failure(job, failed(job, checkpoints=2, epochs=2), counted)


class Notified(MapFunction, CheckpointListener):
    """Depends on the completed checkpoints that it heard of since the last one."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def map(self, value: Any) -> Any:
        if value == ORDERS[50]:
            raise ValueError(self.heard)
        return value

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.heard.append(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.heard.append(-checkpoint_id)


def notified() -> DataStream:
    stream = environment().from_collection(ORDERS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    return stream.rebalance().map(Notified()).name("notified")


def test_a_replay_begins_at_the_newest_complete_checkpoint_and_hears_what_the_task_heard() -> None:
    job = InProcessJob.of(notified(), max_records=10)
    job.checkpoint()
    late = job.checkpoint(complete=False)
    job.abort(job.checkpoint(complete=False))
    job.complete(late)
    failure = failed(job, checkpoints=0)
    assert job.recording is not None
    assert job.recording.bases == [2]
    with replay(job.recording, notified(), store=job.store) as outcome:
        assert str(failure.__cause__) == "[1, -3, 2]"
        assert str(outcome.cause) == "[-3, 2]"  # what it heard before belongs to no state
        assert outcome.record == failure.record
    job.kill()


def test_a_checkpoint_that_was_not_completed_is_no_beginning() -> None:
    job = InProcessJob.of(notified(), max_records=10)
    job.checkpoint()
    job.checkpoint(complete=False)
    failed(job, checkpoints=0)
    assert job.recording is not None
    assert job.recording.bases == [1, 2]
    with replay(job.recording, notified(), store=job.store) as outcome:
        assert (outcome.checkpoint_id, outcome.record) == (1, ORDERS[50])
    job.kill()


CLOCK = JumpingClock(0)


class Slow(MapFunction):
    """Takes a while for each record, and fails at the 41st."""

    def map(self, value: Any) -> Any:
        CLOCK.advance(50)
        if value == ORDERS[40]:
            raise ValueError(value)
        return value


def slow() -> DataStream:
    env = environment(execution_checkpointing_unaligned_enabled="true")
    stream = env.from_collection(ORDERS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    return stream.rebalance().map(Slow()).name("slow")


def test_records_in_flight_are_replayed_where_the_task_left_them() -> None:
    job = InProcessJob.of(slow(), CLOCK, max_records=16)
    job.epoch(leave_after_ms=200)
    job.checkpoint(leave_after_ms=200)
    assert job.in_flight > 0
    failure = failed(job, checkpoints=0, leave_after_ms=200)
    assert job.recording is not None
    assert len(job.recording.segments[0].events) > 5
    same_failure(job, failure, slow)


def test_a_changed_program_can_be_held_against_the_recorded_input() -> None:
    job = InProcessJob.of(counted(), max_records=30)
    failed(job)
    assert job.recording is not None
    with replay(job.recording, counted(limit=1000), store=job.store) as outcome:
        assert outcome.error is None
    job.kill()
