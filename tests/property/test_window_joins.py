"""Window joins and co-groups over random streams equal a brute-force model, for any elements in any order.

The fast operators and the general one run side by side, with late elements; whole jobs run across a restore.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import CoGroupFunction, DataStream, OutputTag, TaggedUnion
from rekindle.testing import InProcessJob
from tests.property.window_models import Aligned, Model, Sessions, actions, aligned, lateness
from tests.support.environments import checkpointed, environment
from tests.support.window_driver import WindowDriver

LATE = OutputTag("late")
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
sessions = st.builds(Sessions, st.integers(1, 12), st.just(False))


class Groups(CoGroupFunction):
    def co_group(self, first, second):
        yield [each[1] for each in first], [each[1] for each in second]


def together(one: DataStream, two: DataStream, windows: Aligned | Sessions, join: bool, late: int = 0) -> DataStream:
    """Both streams by the first field of their elements; the results are of the second fields."""
    pair: Any = one.join(two) if join else one.co_group(two)
    windowed = pair.where(lambda each: each[0], str).equal_to(lambda each: each[0]).window(windows.assigner())
    windowed.allowed_lateness(late).side_output_late_data(LATE)
    stream = windowed.apply((lambda a, b: (a[1], b[1])) if join else Groups())
    stream.get_side_output(LATE)
    return stream


def results(first: list[int], second: list[int], join: bool) -> list[Any]:
    return list(product(first, second)) if join else [(first, second)]


# -- one operator, one element at a time -------------------------------------------------------------------------------


def of_model(fired: list[Any], join: bool) -> list[Any]:
    """The results of a window with these numbers: the even ones are of the first stream."""
    out: list[Any] = []
    for each in fired:
        if each[0] == "late":
            _, (key, number), time = each
            out.append(("late", tagged(key, number), time))
        else:
            numbers, time = each
            one, two = ([n for n in numbers if n % 2 == side] for side in (0, 1))
            out += [(result, time) for result in results(one, two, join)]
    return out


def tagged(key: str, number: int) -> TaggedUnion:
    return TaggedUnion.two((key, number)) if number % 2 else TaggedUnion.one((key, number))


@settings(max_examples=100, deadline=None)
@given(aligned | sessions, st.booleans(), lateness, actions, st.sampled_from([None, PAIR]), st.randoms())
def test_the_operator_gives_what_the_model_gives(windows, join, late, steps, type_info, random):
    env = environment(1)
    one, two = (env.from_collection([("", 0)], type_info) for _ in range(2))
    stream = together(one, two, windows, join, late)
    drivers = [WindowDriver(stream, side_output="late", general=general) for general in (False, True)]
    model = Model(windows, late, lambda key, window, numbers: numbers)
    watermark = 0
    for place, step in enumerate([*steps, ("end",)]):
        match step:
            case ("element", key, time):
                number = 2 * place + random.randrange(2)
                expected = model.element(key, time, number)
                found = [driver.element(tagged(key, number), time) for driver in drivers]
            case ("watermark", advance):
                watermark += advance
                expected = model.watermark(watermark)
                found = [driver.watermark(watermark) for driver in drivers]
            case ("hand over", _):
                snapshots = [driver.snapshot() for driver in reversed(drivers)]
                drivers = [
                    WindowDriver(stream, side_output="late", general=general, restore=snapshot)
                    for general, snapshot in zip((False, True), snapshots, strict=True)
                ]
                continue
            case _:
                expected = model.watermark(MAX_WATERMARK)
                found = [driver.watermark(MAX_WATERMARK) for driver in drivers]
        assert found == [of_model(expected, join)] * 2, f"at step {place}: {step}"
    assert [driver.rows() for driver in drivers] == [0, 0]


# -- a whole job, all elements in order of time ------------------------------------------------------------------------

Element = tuple[str, int, int]


def elements(most: int = 25) -> st.SearchStrategy[list[Element]]:
    keys_and_times = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60)), max_size=most)
    return keys_and_times.map(
        lambda found: [(key, n, time) for n, (key, time) in enumerate(sorted(found, key=lambda each: each[1]))]
    )


def windows_of(windows: Aligned | Sessions, times: list[int]) -> Iterator[range]:
    """All windows of a key, as the times that are in them."""
    if isinstance(windows, Aligned):
        for start, end in {window for time in times for window in windows.windows(time)}:
            yield range(start, end)
        return
    begin: int | None = None
    last: int | None = None
    for time in [*sorted(times), None]:
        if last is not None and (time is None or time - last > windows.gap):
            assert begin is not None
            yield range(begin, last + windows.gap)
            begin = None
        begin, last = (time if begin is None else begin), time


def brute_force(first: list[Element], second: list[Element], windows: Aligned | Sessions, join: bool) -> list[Any]:
    out = []
    for key in "abc":
        sides = [[(n, time) for k, n, time in side if k == key] for side in (first, second)]
        for window in windows_of(windows, [time for side in sides for _, time in side]):
            one, two = ([n for n, time in side if time in window] for side in sides)
            out += results(one, two, join)
    return sorted(out)


def program(first: list[Element], second: list[Element], windows: Any, join: bool, parallelism: int) -> DataStream:
    env = checkpointed(parallelism)
    # Behind by one: sessions that just touch are one, unless the first has fired before the second began.
    in_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))
    by_time = in_order.with_timestamp_assigner(lambda element, _: element[2])
    type_info = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    one, two = (
        env.from_collection(side, type_info).assign_timestamps_and_watermarks(by_time).set_parallelism(1)
        for side in (first, second)
    )
    return together(one, two, windows, join)


def test_sessions_that_just_touch_are_one_also_when_a_watermark_comes_between():
    second = [*(("a", n, 0) for n in range(7)), ("a", 7, 20), ("b", 8, 21), ("a", 9, 21)]
    windows = Sessions(1, False)
    found = InProcessJob.of(program([], second, windows, False, parallelism=2), max_records=3).run()
    assert sorted(tuple(map(sorted, each)) for each in found) == brute_force([], second, windows, False)


@settings(max_examples=30, deadline=None)
@given(elements(), elements(), aligned | sessions, st.booleans(), st.data())
def test_a_job_gives_what_brute_force_gives_also_across_a_restore(first, second, windows, join, data):
    job = InProcessJob.of(program(first, second, windows, join, parallelism=2), max_records=3)
    collected = []
    for _ in range(data.draw(st.integers(1, 6))):
        checkpoint = job.checkpoint()
        collected += checkpoint.results
    job.kill()
    restored = InProcessJob.of(program(first, second, windows, join, parallelism=3), max_records=3, restore=checkpoint)
    in_any_order = [tuple(map(sorted, each)) if not join else each for each in collected + restored.run()]
    expected = brute_force(first, second, windows, join)
    assert sorted(in_any_order) == (expected if join else sorted(tuple(map(sorted, each)) for each in expected))
