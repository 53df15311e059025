"""Async I/O in process: order, capacity, timeouts, retries, watermarks, errors."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from rekindle.common import Time, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import WatermarkGenerator
from rekindle.datastream import ProcessFunction
from rekindle.datastream.async_data_stream import AsyncDataStream
from rekindle.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from rekindle.datastream.async_retry_strategies import (
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    FixedDelayRetryStrategyBuilder,
)
from rekindle.datastream.functions import AsyncFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import GraphError, JobCancelledError, StateAccessError
from rekindle.graph.build import build_plan
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed
from tests.unit.runtime.operators.async_functions import LONG_S, MODES, Gate, Gated, Slower, epochs_until

pytestmark = pytest.mark.usefixtures("no_thread_left")


def failure_of(stream: Any) -> OperatorFailure:
    """Run a job that fails. Returns the failure; its functions are closed."""
    job = InProcessJob.of(stream)
    with pytest.raises(OperatorFailure) as caught:
        job.run()
    assert job.close() == []
    return caught.value


def test_ordered_keeps_the_order_although_the_first_are_slowest():
    stream = AsyncDataStream.ordered_wait(checkpointed().from_collection(range(50)), Slower(), Time.seconds(30))
    assert InProcessJob.of(stream).run() == list(range(50))


def test_unordered_gives_results_as_they_come():
    gate = Gate("unordered")
    stream = AsyncDataStream.unordered_wait(checkpointed().from_collection(range(5)), Gated("unordered"), Time.hours(1))
    job = InProcessJob.of(stream)
    assert job.epoch() == []
    gate.wait_until_asked(0, 1, 2, 3, 4)
    gate.let(3)
    assert epochs_until(job, bool) == [3]
    gate.let(1)
    assert epochs_until(job, bool) == [1]
    gate.open.set()
    assert sorted(job.run()) == [0, 2, 4]


def test_ordered_holds_back_what_is_ready_behind_a_slow_one():
    gate = Gate("held back")
    stream = AsyncDataStream.ordered_wait(checkpointed().from_collection(range(4)), Gated("held back"), Time.hours(1))
    job = InProcessJob.of(stream)
    job.epoch()
    gate.wait_until_asked(0, 1, 2, 3)
    gate.let(1, 2, 3)
    assert [job.epoch() for _ in range(20)] == [[]] * 20
    gate.let(0)
    assert epochs_until(job, lambda came: len(came) == 4) == [0, 1, 2, 3]
    job.run()


class CountingConcurrency(AsyncFunction):
    def open(self, runtime_context):
        self.now = self.most = 0

    async def async_invoke(self, value):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.002)
        self.now -= 1
        return [self.most]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("capacity", [1, 7])
def test_never_more_than_the_capacity_are_in_flight(mode, capacity):
    stream = mode(checkpointed().from_sequence(1, 60), CountingConcurrency(), Time.seconds(30), capacity)
    assert max(InProcessJob.of(stream).run()) == capacity


def test_ordered_results_that_wait_count_as_in_flight():
    """Otherwise the results of later elements would pile up behind one slow element (I5)."""
    gate = Gate("pile")
    stream = AsyncDataStream.ordered_wait(checkpointed().from_sequence(0, 99), Gated("pile"), Time.hours(1), 10)
    job = InProcessJob.of(stream)
    gate.let(*range(1, 100))
    job.epoch()
    gate.wait_until_asked(*range(10))
    assert sorted(gate.asked) == list(range(10))
    gate.open.set()
    assert job.run() == list(range(100))


class OnlyOnce(AsyncFunction):
    """Never answers; its timeout method does."""

    async def async_invoke(self, value):
        await asyncio.sleep(3600)
        return ["too late"]

    def timeout(self, value):
        return [("timeout", value)]


class AsyncTimeout(OnlyOnce):
    async def timeout(self, value):
        await asyncio.sleep(0)
        return [("timeout", value)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", [OnlyOnce(), AsyncTimeout()])
def test_after_the_timeout_the_function_is_asked_for_other_results(mode, function):
    stream = mode(checkpointed().from_sequence(1, 5), function, Time.milliseconds(20), 2)
    assert sorted(InProcessJob.of(stream).run()) == [("timeout", number) for number in range(1, 6)]


class NoTimeout(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(3600 if value == 2 else 0)
        return [value]


def test_without_a_timeout_method_the_job_fails_and_names_the_record():
    stream = AsyncDataStream.unordered_wait(checkpointed().from_sequence(1, 3), NoTimeout(), Time.milliseconds(500))
    failure = failure_of(stream)
    assert failure.record == 2
    assert "Async function call has timed out for input: 2" in str(failure.__cause__)


def test_a_timeout_of_zero_is_none():
    stream = AsyncDataStream.ordered_wait(checkpointed().from_collection(range(5)), Slower(), Time.seconds(0))
    assert InProcessJob.of(stream).run() == list(range(5))


class Flaky(AsyncFunction):
    """Fails, or returns no result, for a number of calls."""

    def __init__(self, failures: int, empty: bool = False) -> None:
        self.failures, self.empty = failures, empty

    def open(self, runtime_context):
        self.calls: dict[Any, list[float]] = {}

    async def async_invoke(self, value):
        calls = self.calls.setdefault(value, [])
        calls.append(time.monotonic())
        if len(calls) <= self.failures:
            if self.empty:
                return []
            raise ConnectionError(f"call {len(calls)} for {value}")
        gaps = [later - earlier for earlier, later in pairwise(calls)]
        return [(value, len(calls), gaps)]


def retrying(function: AsyncFunction, strategy: Any, mode: Any = AsyncDataStream.ordered_wait_with_retry) -> Any:
    return mode(checkpointed().from_sequence(1, 3), function, Time.seconds(30), strategy)


def retried(*arguments: Any) -> list[Any]:
    return InProcessJob.of(retrying(*arguments)).run()


def test_errors_are_retried_so_many_times_after_a_fixed_time():
    results = retried(Flaky(2), FixedDelayRetryStrategy(2, 20, None, has_exception_predicate))
    assert [(value, calls) for value, calls, _ in results] == [(1, 3), (2, 3), (3, 3)]
    assert min(gap for _, _, gaps in results for gap in gaps) >= 0.02


def test_empty_results_are_retried_after_times_that_grow():
    strategy = ExponentialBackoffDelayRetryStrategy(5, 10, 40, 2.0, empty_result_predicate, None)
    results = retried(Flaky(4, empty=True), strategy, AsyncDataStream.unordered_wait_with_retry)
    assert sorted((value, calls) for value, calls, _ in results) == [(1, 5), (2, 5), (3, 5)]
    wanted = [0.01, 0.02, 0.04, 0.04]
    assert all(gap >= least for _, _, gaps in results for gap, least in zip(gaps, wanted, strict=True))


def test_when_the_retries_are_used_up_the_last_error_counts():
    strategy = FixedDelayRetryStrategyBuilder(1, 5).if_exception(has_exception_predicate).build()
    assert "call 2 for" in str(failure_of(retrying(Flaky(2), strategy)).__cause__)


def test_when_the_retries_are_used_up_an_empty_result_is_the_result():
    assert retried(Flaky(9, empty=True), FixedDelayRetryStrategy(1, 5, empty_result_predicate, None)) == []


def test_errors_that_the_predicate_does_not_name_are_not_retried():
    strategy = FixedDelayRetryStrategy(5, 5, None, lambda error: isinstance(error, KeyError))
    assert "call 1 for" in str(failure_of(retrying(Flaky(1), strategy)).__cause__)


def test_the_timeout_limits_all_tries_together():
    stream = AsyncDataStream.ordered_wait_with_retry(
        checkpointed().from_sequence(1, 2),
        FlakyForever(),
        Time.milliseconds(60),
        FixedDelayRetryStrategy(1000, 10, None, has_exception_predicate),
    )
    results = InProcessJob.of(stream).run()
    assert [value for value, _ in results] == [1, 2]
    assert all(1 < calls < 20 for _, calls in results)


class FlakyForever(AsyncFunction):
    def open(self, runtime_context):
        self.calls: dict[Any, int] = {}

    async def async_invoke(self, value):
        self.calls[value] = self.calls.get(value, 0) + 1
        raise ConnectionError

    def timeout(self, value):
        return [(value, self.calls[value])]


class EveryTenth(WatermarkGenerator):
    """A watermark after each element that is a multiple of ten."""

    def on_event(self, event, event_timestamp, output):
        if event % 10 == 0:
            output.emit_watermark(event)

    def on_periodic_emit(self, output):
        pass


class Shuffled(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep((value * 7919 % 10) / 1000)
        return [value]


class SeenWith(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


@pytest.mark.parametrize("mode", MODES)
def test_watermarks_are_never_overtaken_and_overtake_nothing(mode):
    strategy = WatermarkStrategy.for_generator(EveryTenth).with_timestamp_assigner(lambda value, _: value)
    stamped = checkpointed().from_sequence(1, 100).assign_timestamps_and_watermarks(strategy)
    seen = InProcessJob.of(mode(stamped, Shuffled(), Time.seconds(30), 50).process(SeenWith())).run()
    assert sorted(value for value, _, _ in seen) == list(range(1, 101))
    assert all(timestamp == value for value, timestamp, _ in seen)
    ten_before = {value: (value - 1) // 10 * 10 or -(2**63) for value in range(1, 101)}
    assert all(watermark == ten_before[value] for value, _, watermark in seen)
    in_order = [value for value, _, _ in seen] == list(range(1, 101))
    assert in_order == (mode is AsyncDataStream.ordered_wait), "the test must shuffle, or it shows nothing"


class Failing(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0)
        if value == 7:
            raise ValueError("seven is bad")
        return [value]


@pytest.mark.parametrize("mode", MODES)
def test_an_error_fails_the_job_with_the_users_traceback_and_the_record(mode):
    failure = failure_of(mode(checkpointed().from_sequence(1, 10), Failing(), Time.seconds(30)))
    cause = failure.__cause__
    assert (failure.record, str(cause)) == (7, "seven is bad")
    frames = []
    trace = cause.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert frames[-1] == "async_invoke"


def test_an_error_behind_a_slow_element_does_not_wait_for_it():
    Gate("slow head")
    stream = checkpointed().from_sequence(0, 3)
    stream = AsyncDataStream.ordered_wait(stream, GatedOrFailing("slow head"), Time.hours(1))
    assert failure_of(stream).record == 2


class GatedOrFailing(Gated):
    async def async_invoke(self, value):
        if value == 2:
            raise RuntimeError("two")
        return await super().async_invoke(value)


class Leaving(AsyncFunction):
    async def async_invoke(self, value):
        raise SystemExit(3)


def test_a_function_that_wants_to_leave_fails_the_job():
    stream = AsyncDataStream.ordered_wait(checkpointed().from_sequence(1, 2), Leaving(), Time.seconds(30))
    assert isinstance(failure_of(stream).__cause__, SystemExit)


class Returning(AsyncFunction):
    def __init__(self, results: Any) -> None:
        self.results = results

    async def async_invoke(self, value):
        return self.results


def test_any_number_of_results():
    stream = AsyncDataStream.ordered_wait(checkpointed().from_sequence(1, 2), Returning(()), Time.seconds(30))
    assert InProcessJob.of(stream).run() == []
    stream = AsyncDataStream.ordered_wait(checkpointed().from_sequence(1, 2), Returning((None, 5)), Time.seconds(30))
    assert InProcessJob.of(stream).run() == [None, 5, None, 5]


@pytest.mark.parametrize("wrong", [None, 5, "text"])
def test_results_that_are_no_list_are_refused(wrong):
    stream = AsyncDataStream.ordered_wait(checkpointed().from_sequence(1, 2), Returning(wrong), Time.seconds(30))
    assert "must return a list of results" in str(failure_of(stream).__cause__)


class OnItsLoop(AsyncFunction):
    """Creates a client in `open`, on the loop; its `close` is a coroutine."""

    async def open(self, runtime_context):
        self.loop = asyncio.get_running_loop()
        self.lock = asyncio.Lock()
        self.name = runtime_context.get_task_name_with_subtasks()

    async def async_invoke(self, value):
        async with self.lock:
            await asyncio.sleep(0)
        return [(value, self.name, asyncio.get_running_loop() is self.loop)]

    async def close(self):
        await asyncio.sleep(0)
        closed.append(asyncio.get_running_loop() is self.loop)


closed: list[bool] = []


def test_open_and_close_run_on_the_loop():
    closed.clear()
    stream = AsyncDataStream.ordered_wait(checkpointed().from_sequence(1, 2), OnItsLoop(), Time.seconds(30))
    name = "async wait operator (1/1)"
    assert InProcessJob.of(stream).run() == [(1, name, True), (2, name, True)]
    assert closed == [True]


class AsksForState(AsyncFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    async def async_invoke(self, value):
        return []


def test_there_is_no_keyed_state_not_even_on_a_keyed_stream():
    keyed = checkpointed().from_sequence(1, 2).key_by(lambda value: value)
    stream = AsyncDataStream.ordered_wait(keyed, AsksForState(), Time.seconds(30))
    with pytest.raises(OperatorFailure) as caught:
        InProcessJob.of(stream)
    assert isinstance(caught.value.__cause__, StateAccessError)
    assert "an AsyncFunction has none" in str(caught.value.__cause__)


def test_cancelled_while_it_waits_for_room():
    gate = Gate("cancelled")
    stream = AsyncDataStream.ordered_wait(checkpointed().from_sequence(0, 99_999), Gated("cancelled"), Time.hours(1), 3)
    job = InProcessJob.of(stream)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            job.run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    gate.wait_until_asked(0, 1, 2)
    for task in job.tasks.values():
        task.cancel()
    thread.join(LONG_S)
    assert not thread.is_alive()
    assert job.close() == []
    assert [type(error) for error in failures] == [JobCancelledError]


def test_what_cannot_be_is_refused_when_it_is_said():
    numbers = checkpointed().from_sequence(1, 2)

    class Plain(AsyncFunction):
        def async_invoke(self, value):
            return [value]

    with pytest.raises(GraphError, match=r"Plain\.async_invoke should be declared as `async def`"):
        AsyncDataStream.ordered_wait(numbers, Plain(), Time.seconds(1))
    with pytest.raises(GraphError, match="the capacity must be a whole number of 1 or more, not 0"):
        AsyncDataStream.ordered_wait(numbers, Slower(), Time.seconds(1), 0)
    with pytest.raises(GraphError, match=r"takes a timeout such as Time.seconds\(10\), not 5"):
        AsyncDataStream.ordered_wait(numbers, Slower(), 5)
    strategy = FixedDelayRetryStrategy(1, 1, None, None)
    with pytest.raises(GraphError, match="with retries a timeout is needed"):
        AsyncDataStream.ordered_wait_with_retry(numbers, Slower(), Time.seconds(0), strategy)
    with pytest.raises(GraphError, match="takes an AsyncRetryStrategy, not None"):
        AsyncDataStream.ordered_wait_with_retry(numbers, Slower(), Time.seconds(1), None)
    with pytest.raises(GraphError, match="max_attempts must be greater than zero, not 0"):
        FixedDelayRetryStrategy(0, 1, None, None)
    with pytest.raises(GraphError, match=r"AsyncFunction belongs in AsyncDataStream.unordered_wait\(\)"):
        numbers.map(Slower())


def test_it_chains_and_elements_in_flight_of_undeclared_types_are_listed(caplog):
    env = checkpointed()
    stream = AsyncDataStream.ordered_wait(env.from_collection([1]), Slower(), Time.seconds(1), output_type=int)
    with caplog.at_level("INFO", logger="rekindle.graph"):
        plan = build_plan(env._program("async", stream._collect()))
    assert [chain.name for chain in plan.chains] == [
        "Source: Collection Source -> async wait operator -> Sink: Collect Stream Sink"
    ]
    assert "elements in flight in 'async wait operator' (no type was declared)" in caplog.text
