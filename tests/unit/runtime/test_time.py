"""Event time, processing time, timers and the end of input."""

from __future__ import annotations

import threading
from time import monotonic

import pytest

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import MAX_WATERMARK, Watermark, WatermarkGenerator
from rekindle.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
    TimeDomain,
)
from rekindle.datastream.functions import SourceFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeoutTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import environment

LAST = lambda value, _: value[1]  # noqa: E731
BY_TIME = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(
    lambda v, _: v[1]
)


class TimesOf(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_timestamps_and_watermarks_travel_with_the_records():
    records = [("a", 10), ("b", 20), ("c", 12)]
    stream = environment().from_collection(records).assign_timestamps_and_watermarks(BY_TIME).disable_chaining()
    assert [timestamp for _, timestamp, _ in InProcessJob.of(stream.process(TimesOf())).run()] == [10, 20, 12]


def test_the_watermark_is_the_newest_timestamp_less_the_bound_less_one():
    stream = environment().from_collection([("a", 10), ("b", 30)]).assign_timestamps_and_watermarks(BY_TIME)
    job = InProcessJob.of(stream.process(TimesOf()), max_records=1)
    watermarks = [watermark for _ in range(2) for _, _, watermark in job.epoch()]
    assert watermarks == [-(2**63), 10 - 5 - 1]


class Timers(KeyedProcessFunction):
    """Registers the timers that a record asks for: (key, time, [("event"|"processing", time), ...])."""

    def process_element(self, value, ctx):
        service = ctx.timer_service()
        for action, time in value[2]:
            getattr(service, f"{action}_time_timer")(time)
        yield "element", value[0], ctx.timestamp()

    def on_timer(self, timestamp, ctx):
        domain = "event" if ctx.time_domain() is TimeDomain.EVENT_TIME else "processing"
        yield domain, ctx.get_current_key(), timestamp, ctx.timestamp()


def timers_of(records, clock=None, parallelism=1, max_records=1_000_000):
    stream = environment(parallelism).from_collection(records).assign_timestamps_and_watermarks(BY_TIME)
    return InProcessJob.of(stream.key_by(lambda v: v[0]).process(Timers()), clock, max_records)


def fired(results):
    return [result[:3] for result in results if result[0] != "element"]


def test_event_timers_fire_in_order_of_time_then_key_and_once():
    register = "register_event"
    records = [
        ("b", 1, [(register, 20), (register, 10), (register, 20)]),
        ("a", 2, [(register, 20)]),
        ("a", 3, [(register, 20)]),
    ]
    assert fired(timers_of(records).run()) == [("event", "b", 10), ("event", "a", 20), ("event", "b", 20)]


def test_a_deleted_timer_does_not_fire():
    records = [("a", 1, [("register_event", 20), ("delete_event", 20), ("register_event", 30)])]
    assert fired(timers_of(records).run()) == [("event", "a", 30)]


def test_event_timers_wait_for_the_watermark():
    records = [("a", 1, [("register_event", 10)]), ("a", 15, []), ("a", 17, [])]
    job = timers_of(records, max_records=1)
    assert [fired(job.epoch()) for _ in range(3)] == [[], [], [("event", "a", 10)]]


def test_the_end_of_input_fires_everything_once():
    records = [("a", 1, [("register_event", 10**15)])]
    job = timers_of(records)
    assert fired(job.run()) == [("event", "a", 10**15)]


def test_processing_time_timers_fire_by_the_clock_and_not_at_the_end():
    clock = ManualClock(1000)
    records = [("a", 1, [("register_processing", 1050), ("register_processing", 9999)]), ("a", 2, [])]
    job = timers_of(records, clock, max_records=1)
    assert fired(job.epoch()) == []
    task = next(task for task in job.tasks.values() if task.chain.stage == 1)
    assert task.next_due_ms() == 1050, "the task asks for an epoch at that time (I4)"
    clock.advance(60)
    assert fired(job.epoch()) == [("processing", "a", 1050)]
    assert fired(job.run()) == []


def test_a_timer_set_by_a_timer_at_a_time_that_has_passed_fires_at_once():
    class Chain(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(5)

        def on_timer(self, timestamp, ctx):
            yield timestamp
            if timestamp < 8:
                ctx.timer_service().register_event_time_timer(timestamp + 1)

    stream = environment().from_collection([("a", 100)]).assign_timestamps_and_watermarks(BY_TIME)
    assert InProcessJob.of(stream.key_by(lambda v: v[0]).process(Chain())).run() == [5, 6, 7, 8]


class WatermarkSeen(KeyedProcessFunction):
    """Emits an element when a timer fires: the operator downstream must see it before the watermark."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        yield "fired", timestamp


def test_output_of_a_timer_comes_before_the_watermark_that_fired_it():
    stream = environment().from_collection([("a", 100)]).assign_timestamps_and_watermarks(BY_TIME)
    downstream = stream.key_by(lambda v: v[0]).process(WatermarkSeen()).rebalance().process(TimesOf())
    [(value, timestamp, watermark)] = InProcessJob.of(downstream).run()
    assert (value, timestamp) == (("fired", 10), 10)
    assert watermark < 10


def test_the_slowest_of_two_inputs_decides():
    env = environment()
    quick = env.from_collection([("q", 1000)]).assign_timestamps_and_watermarks(BY_TIME)
    slow = env.from_collection([("s", 20), ("s", 21)]).assign_timestamps_and_watermarks(BY_TIME)
    job = InProcessJob.of(quick.union(slow).key_by(lambda v: v[0]).process(TimesOfKeyed()), max_records=1)
    job.epoch()
    assert [watermark for _, watermark in job.epoch()] == [20 - 5 - 1]


class TimesOfKeyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timer_service().current_watermark()


def test_an_idle_input_is_not_waited_for():
    clock = ManualClock(0)
    env = environment()
    idle = WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(50))
    silent = env.add_source(Silent()).assign_timestamps_and_watermarks(idle)
    busy = env.from_collection([("b", time) for time in (10, 20, 30)]).assign_timestamps_and_watermarks(BY_TIME)
    job = InProcessJob.of(silent.union(busy).key_by(lambda v: v[0]).process(TimesOfKeyed()), clock, max_records=1)
    assert [watermark for _, watermark in job.epoch()] == [-(2**63)]
    clock.advance(60)
    job.epoch()
    assert [watermark for _, watermark in job.epoch()] == [20 - 5 - 1]
    job.close()


class Silent(SourceFunction):
    """Never collects anything; ends when cancelled."""

    def __init__(self):
        self.running = True

    def run(self, ctx):
        self.ended = threading.Event()
        self.ended.wait()

    def cancel(self):
        getattr(self, "ended", None) and self.ended.set()


class Punctuated(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event[0] == "mark":
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        pass


class EveryBatch(WatermarkGenerator):
    newest = 0

    def on_event(self, event, event_timestamp, output):
        self.newest = max(self.newest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.newest - 100))


class OneThenQuiet(SourceFunction):
    """Emits one element, then nothing; never ends."""

    def run(self, ctx):
        ctx.collect(("a", 20))
        self.ended = threading.Event()
        self.ended.wait()

    def cancel(self):
        getattr(self, "ended", None) and self.ended.set()


class AtTen(KeyedProcessFunction):
    """A timer at 10."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        yield "fired", timestamp


@pytest.mark.parametrize(("generator", "expected"), [(Punctuated, [-(2**63), 20]), (EveryBatch, [-(2**63), -80])])
def test_custom_generators(generator, expected):
    strategy = WatermarkStrategy.for_generator(generator).with_timestamp_assigner(lambda v, _: v[1])
    records = [("a", 10), ("mark", 20), ("b", 30)]
    stream = environment().from_collection(records).assign_timestamps_and_watermarks(strategy)
    job = InProcessJob.of(stream.process(TimesOf()), max_records=2)
    first, second = job.epoch(), job.epoch()
    assert [first[0][2], second[0][2]] == expected


GENERATED = WatermarkStrategy.for_generator(EveryBatch).with_timestamp_assigner(LAST)


def epochs_until_received(job):
    """The source's thread has collected its element, and it has passed an exchange."""
    deadline = monotonic() + 60
    while not any(count.records for count in job.received):
        assert monotonic() < deadline
        job.epoch()


def watermarks_seen(job, epochs=1):
    return [watermark for _ in range(epochs) for _, _, watermark in job.epoch()]


@pytest.mark.parametrize("strategy", [BY_TIME, GENERATED])
def test_periodic_watermarks_come_once_in_an_interval_that_is_set(strategy):
    env = environment()
    env.get_config().set_auto_watermark_interval(1000)
    records = [("a", 200), ("b", 300), ("c", 400), ("d", 500)]
    stream = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
    clock = ManualClock()
    job = InProcessJob.of(stream.process(TimesOf()), clock, max_records=1)
    assert watermarks_seen(job, epochs=2) == [-(2**63)] * 2
    clock.advance(1000)
    behind = 6 if strategy is BY_TIME else 100
    assert watermarks_seen(job, epochs=2) == [300 - behind] * 2, "one interval is over, the next is not"
    job.kill()


def test_a_watermark_that_waits_for_its_interval_asks_for_an_epoch():
    env = environment()
    env.get_config().set_auto_watermark_interval(1000)
    stream = env.add_source(OneThenQuiet()).assign_timestamps_and_watermarks(BY_TIME)
    clock = ManualClock()
    job = InProcessJob.of(stream.key_by(lambda v: v[0]).process(AtTen()), clock)
    epochs_until_received(job)
    assert job.tasks[0, 0].next_due_ms() == clock.wall_ms() + 1000
    clock.advance(1000)
    assert job.epoch() == [("fired", 10)]
    assert job.tasks[0, 0].next_due_ms() is None
    job.kill()


@pytest.mark.parametrize("strategy", [BY_TIME, GENERATED])
def test_an_interval_of_0_turns_periodic_watermarks_off(strategy):
    env = environment()
    env.get_config().set_auto_watermark_interval(0)
    stream = env.from_collection([("a", 200), ("b", 300)]).assign_timestamps_and_watermarks(strategy)
    clock = ManualClock()
    job = InProcessJob.of(stream.process(TimesOf()), clock, max_records=1)
    seen = watermarks_seen(job)
    clock.advance(60_000)
    assert seen + watermarks_seen(job) == [-(2**63)] * 2


def test_an_interval_of_0_leaves_punctuated_watermarks_alone():
    env = environment()
    env.get_config().set_auto_watermark_interval(0)
    strategy = WatermarkStrategy.for_generator(Punctuated).with_timestamp_assigner(LAST)
    stream = env.from_collection([("mark", 20), ("b", 30)]).assign_timestamps_and_watermarks(strategy)
    assert watermarks_seen(InProcessJob.of(stream.process(TimesOf()))) == [-(2**63), 20]


class ByTheClock(WatermarkGenerator):
    """Follows the clock, whether elements come or not."""

    now = 0

    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        if ByTheClock.now:
            output.emit_watermark(Watermark(ByTheClock.now))


def test_a_generator_is_asked_every_interval_while_no_element_comes():
    ByTheClock.now = 0
    strategy = WatermarkStrategy.for_generator(ByTheClock).with_timestamp_assigner(LAST)
    stream = environment().add_source(OneThenQuiet()).assign_timestamps_and_watermarks(strategy)
    clock = ManualClock()
    job = InProcessJob.of(stream.key_by(lambda v: v[0]).process(AtTen()), clock)
    task = job.tasks[0, 0]
    epochs_until_received(job)
    clock.advance(200)
    assert task.next_due_ms() == clock.wall_ms() + 200, "it has said nothing new: no epoch is needed"
    ByTheClock.now = 10
    clock.advance(200)
    assert task.next_due_ms() <= clock.wall_ms(), "it has: an epoch carries it"
    assert job.epoch() == [("fired", 10)]
    job.kill()


def test_what_a_generator_raises_between_two_epochs_fails_the_next_one():
    class Raises(ByTheClock):
        def on_periodic_emit(self, output):
            if ByTheClock.now:
                raise ValueError("no time")

    ByTheClock.now = 0
    strategy = WatermarkStrategy.for_generator(Raises).with_timestamp_assigner(LAST)
    stream = environment().add_source(OneThenQuiet()).assign_timestamps_and_watermarks(strategy).name("marks")
    clock = ManualClock()
    job = InProcessJob.of(stream.rebalance(), clock)
    epochs_until_received(job)
    ByTheClock.now = 10
    clock.advance(200)
    assert job.tasks[0, 0].next_due_ms() <= clock.wall_ms()
    with pytest.raises(OperatorFailure) as failure:
        job.epoch()
    assert failure.value.operator == "marks"
    assert str(failure.value.__cause__) == "no time"
    job.kill()


def test_an_assigner_that_returns_no_number_is_named():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v, _: None)
    with pytest.raises(Exception) as caught:
        InProcessJob.of(environment().from_collection([("a", 1)]).assign_timestamps_and_watermarks(strategy)).run()
    assert "must return an int" in str(caught.value.__cause__)


class Emits(SourceFunction):
    """A source with timestamps, watermarks and idleness of its own."""

    def run(self, ctx):
        ctx.collect_with_timestamp("early", 5)
        ctx.emit_watermark(Watermark(10))
        ctx.collect_with_timestamp("late", 7)
        ctx.mark_as_temporarily_idle()
        ctx.collect("untimed", offset=3, split="s")

    def cancel(self):
        pass


def test_a_source_function_emits_timestamps_and_watermarks():
    job = InProcessJob.of(environment().add_source(Emits()).process(TimesOf()))
    results = job.run()
    assert [(value, timestamp) for value, timestamp, _ in results] == [("early", 5), ("late", 7), ("untimed", None)]
    assert [watermark for _, _, watermark in results][1:] == [10, 10]


class Total(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.total.value()


def test_batch_mode_fires_event_time_at_the_end():
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_collection([("a", 1), ("a", 50), ("a", 2)]).assign_timestamps_and_watermarks(BY_TIME)
    job = InProcessJob.of(stream.key_by(lambda v: v[0]).process(Total()), max_records=1)
    assert job.run() == [("a", 1, 3), ("a", 2, 3), ("a", 50, 3)]


class OnBothClocks(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(value[1])
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, ctx.time_domain()
        ctx.timer_service().register_processing_time_timer(timestamp + 1)
        ctx.timer_service().register_event_time_timer(timestamp + 1)


def test_batch_mode_fires_timers_of_both_clocks_once_at_the_end():
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_collection([("b", 7), ("a", 10**15), ("a", 0)]).key_by(lambda v: v[0]).process(OnBothClocks())
    timers = [("a", 0), ("b", 7), ("a", 10**15)]
    domains = (TimeDomain.EVENT_TIME, TimeDomain.PROCESSING_TIME)
    expected = [(*timer, domain) for domain in domains for timer in timers]
    assert InProcessJob.of(stream, ManualClock(1000), max_records=1).run() == expected


class Elements(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, list(elements)


@pytest.mark.parametrize(
    ("assigner", "trigger"),
    [
        (EventTimeSessionWindows.with_gap(5000), None),
        (TumblingEventTimeWindows.of(5000), None),
        (TumblingProcessingTimeWindows.of(5000), None),
        (ProcessingTimeSessionWindows.with_gap(5000), None),
        (GlobalWindows.create(), ProcessingTimeoutTrigger.of(CountTrigger.of(3), 5000)),
        (GlobalWindows.create(), PurgingTrigger.of(ContinuousProcessingTimeTrigger.of(5000))),
        (GlobalWindows.create(), PurgingTrigger.of(ContinuousEventTimeTrigger.of(5000))),
    ],
    ids=str,
)
def test_batch_mode_evaluates_windows_of_both_clocks_at_the_end(assigner, trigger):
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_collection([("a", 1), ("a", 2)]).assign_timestamps_and_watermarks(BY_TIME)
    windowed = stream.key_by(lambda v: v[0]).window(assigner)
    windowed = windowed if trigger is None else windowed.trigger(trigger)
    assert InProcessJob.of(windowed.process(Elements()), max_records=1).run() == [("a", [("a", 1), ("a", 2)])]


def test_batch_mode_emits_only_the_last_value_per_key():
    env = environment(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    records = [("a", 1), ("b", 5), ("a", 2)]
    stream = env.from_collection(records).key_by(lambda v: v[0]).reduce(lambda x, y: (x[0], x[1] + y[1]))
    assert sorted(InProcessJob.of(stream, max_records=1).run()) == [("a", 3), ("b", 5)]


def test_the_last_watermark_is_the_end_of_time():
    job = InProcessJob.of(environment().from_collection([1]).map(lambda n: n))
    job.run()
    assert all(task.finished for task in job.tasks.values())
    assert {task._head.operator.current_watermark for task in job.tasks.values() if task.chain.stage} <= {MAX_WATERMARK}
