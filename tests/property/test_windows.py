"""Windows over random streams with late and out-of-order elements: the output equals that of a brute-force model.

The fast operators, the general one, and the general one on disk with nearly nothing in memory run side by side, and
hand their state over to each other at random cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.common import Types
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import (
    AggregateFunction,
    DataStream,
    OutputTag,
    ProcessWindowFunction,
    WindowFunction,
)
from tests.property.window_models import (
    Aligned,
    Model,
    Sessions,
    Window,
    actions,
    aligned,
    lateness,
)
from tests.support.window_driver import Snapshot, WindowDriver, keyed_stream

LATE = OutputTag("late")


# -- window functions --------------------------------------------------------------------------------------------------


class Collected(AggregateFunction):
    """All elements in the order in which they were added."""

    def create_accumulator(self):
        return ()

    def add(self, value, accumulator):
        return (*accumulator, value[1])

    def get_result(self, accumulator):
        return list(accumulator)

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class AllOfThem(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, context.window().end, [number for _, number in elements]


class OneOfThem(WindowFunction):
    """The value of an incremental function, with its window."""

    def apply(self, key, window, inputs):
        (value,) = inputs
        yield key, window.start, window.end, value


def reduced(windowed: Any) -> DataStream:
    return windowed.reduce(lambda one, other: (one[0], f"{one[1]},{other[1]}"))


def reduced_with_window(windowed: Any) -> DataStream:
    return windowed.reduce(lambda one, other: (one[0], f"{one[1]},{other[1]}"), OneOfThem())


def aggregated(windowed: Any) -> DataStream:
    return windowed.aggregate(Collected(), OneOfThem())


def processed(windowed: Any) -> DataStream:
    return windowed.process(AllOfThem())


#: The ways to evaluate a window, and the expected result of each for (key, window, numbers).
EVALUATIONS: list[tuple[Callable[[Any], DataStream], Callable[[str, Window, list[int]], Any]]] = [
    (reduced, lambda key, window, numbers: (key, _joined(numbers))),
    (reduced_with_window, lambda key, window, numbers: (key, *window, (key, _joined(numbers)))),
    (aggregated, lambda key, window, numbers: (key, *window, numbers)),
    (processed, lambda key, window, numbers: (key, *window, numbers)),
]


def _joined(numbers: list[int]) -> Any:
    return numbers[0] if len(numbers) == 1 else ",".join(map(str, numbers))


# -- the model --------------------------------------------------------------------------------------------------------


# -- random streams ---------------------------------------------------------------------------------------------------

sessions = st.builds(Sessions, st.integers(1, 12), st.booleans())


def run_against_model(windows: Aligned | Sessions, evaluation: int, late: int, steps: Any, key_type: Any) -> None:
    evaluate, shown = EVALUATIONS[evaluation]
    windowed = keyed_stream(None, key_type).window(windows.assigner()).allowed_lateness(late)
    stream = evaluate(windowed.side_output_late_data(LATE))
    stream.get_side_output(LATE)
    drivers = new_drivers(stream)
    assert type(drivers[0].operator) is not type(drivers[1].operator)
    model = Model(windows, late, shown)
    watermark = 0
    for number, step in enumerate([*steps, ("end",)]):
        match step:
            case ("element", key, time):
                expected = model.element(key, time, number)
                found = [driver.element((key, number), time) for driver in drivers]
            case ("watermark", advance):
                watermark += advance
                expected = model.watermark(watermark)
                found = [driver.watermark(watermark) for driver in drivers]
            case ("hand over", places):
                snapshots = [driver.snapshot() for driver in drivers]
                drivers = new_drivers(stream, snapshots[places:] + snapshots[:places])
                continue
            case _:
                expected = model.watermark(MAX_WATERMARK)
                found = [driver.watermark(MAX_WATERMARK) for driver in drivers]
        assert found == [expected] * len(drivers), f"at step {number}: {step}"
    # The end of the input leaves nothing behind: neither rows nor timers.
    assert [driver.rows() for driver in drivers] == [0] * len(drivers)
    assert [len(driver.timers.event) for driver in drivers] == [0] * len(drivers)


def new_drivers(stream: DataStream, restore: Sequence[Snapshot | None] | None = None) -> list[WindowDriver]:
    """The drivers that run side by side."""
    kinds: list[dict[str, Any]] = [{}, {"general": True}, {"general": True, "backend": "rocksdb without cache"}]
    snapshots = restore or [None] * len(kinds)
    return [
        WindowDriver(stream, side_output="late", restore=snapshot, **kind)
        for kind, snapshot in zip(kinds, snapshots, strict=True)
    ]


@settings(max_examples=100, deadline=None)
@given(aligned, st.integers(0, len(EVALUATIONS) - 1), lateness, actions, st.sampled_from([None, Types.STRING()]))
def test_tumbling_and_sliding_windows(windows, evaluation, late, steps, key_type):
    run_against_model(windows, evaluation, late, steps, key_type)


@settings(max_examples=100, deadline=None)
@given(sessions, st.integers(0, len(EVALUATIONS) - 1), lateness, actions, st.sampled_from([None, Types.STRING()]))
def test_sessions(windows, evaluation, late, steps, key_type):
    run_against_model(windows, evaluation, late, steps, key_type)


def _by_output(events: list[Any]) -> tuple[list[Any], list[Any]]:
    """The main output and the side output, apart: there is no order between the two."""
    return [event for event in events if event[0] != "late"], [event for event in events if event[0] == "late"]


@settings(max_examples=50, deadline=None)
@given(aligned | sessions, st.integers(0, len(EVALUATIONS) - 1), lateness, actions)
def test_one_batch_is_as_good_as_many(windows, evaluation, late, steps):
    """Elements between two watermarks give the same, one by one or all at once."""
    evaluate, _ = EVALUATIONS[evaluation]
    stream = evaluate(keyed_stream().window(windows.assigner()).allowed_lateness(late).side_output_late_data(LATE))
    stream.get_side_output(LATE)
    singly, at_once = (WindowDriver(stream, side_output="late") for _ in range(2))
    batch: list[Any] = []
    watermark = 0
    one_by_one: list[Any] = []
    for number, step in enumerate(steps):
        if step[0] == "element":
            batch.append(((step[1], number), step[2]))
            one_by_one += singly.element((step[1], number), step[2])
        elif step[0] == "watermark":
            assert _by_output(at_once.batch(batch)) == _by_output(one_by_one)
            batch, one_by_one = [], []
            watermark += step[1]
            assert at_once.watermark(watermark) == singly.watermark(watermark)
    assert _by_output(at_once.batch(batch)) == _by_output(one_by_one)
    assert at_once.watermark(MAX_WATERMARK) == singly.watermark(MAX_WATERMARK)
