"""Rows have the names that their declared type reports: in a chain, behind an exchange, in state, as keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common import Duration, Row, Time, TypeInformation, Types, WatermarkStrategy
from rekindle.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.datastream.window import TumblingEventTimeWindows
from rekindle.errors import TypeMismatchError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed

PAIR = Types.ROW([Types.STRING(), Types.LONG()])
NAMED = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()])
PICKLED = Types.ROW([Types.STRING(), Types.PICKLED_BYTE_ARRAY()])


def shown(row: Row) -> str:
    return f"{row!r} {row.as_dict()}"


def run(stream: DataStream) -> list[Any]:
    return InProcessJob.of(stream).run()


class Emits(SourceFunction):
    def run(self, ctx: Any) -> None:
        ctx.collect(Row("a", 1))

    def cancel(self) -> None:
        pass


SOURCES: dict[str, Callable[[StreamExecutionEnvironment, TypeInformation], DataStream]] = {
    "a collection": lambda env, kind: env.from_collection([Row("a", 1)], kind),
    "a collection of tuples": lambda env, kind: env.from_collection([("a", 1)], kind),
    "a source function": lambda env, kind: env.add_source(Emits(), type_info=kind),
    "a map": lambda env, kind: env.from_collection([1]).map(lambda n: Row("a", n), output_type=kind),
    "a map to tuples": lambda env, kind: env.from_collection([1]).map(lambda n: ("a", n), output_type=kind),
    "a flat map": lambda env, kind: env.from_collection([1]).flat_map(lambda n: [Row("a", n)], output_type=kind),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("chained", [True, False], ids=["chained", "exchanged"])
@pytest.mark.parametrize(
    ("kind", "names"), [(PAIR, ("f0", "f1")), (NAMED, ("word", "count")), (PICKLED, ("f0", "f1"))], ids=str
)
def test_a_row_has_the_names_of_its_type_wherever_it_comes_from(
    source: str, chained: bool, kind: TypeInformation, names: tuple[str, str]
) -> None:
    stream = SOURCES[source](checkpointed(), kind)
    stream = stream if chained else stream.rebalance()
    word, count = names
    read = stream.map(lambda row: (repr(row), getattr(row, word), row[count], row[1], row.as_dict()))
    assert run(read) == [(f"Row({word}='a', {count}=1)", "a", 1, 1, {word: "a", count: 1})]


def test_rows_inside_other_types_have_names_too() -> None:
    kind = Types.TUPLE([Types.LIST(PAIR), Types.MAP(Types.STRING(), PAIR), Types.ROW([PAIR])])
    stream = (
        checkpointed()
        .from_collection([1])
        .map(lambda n: ([Row("a", n), None], {"k": ("b", n)}, Row(Row("c", n))), output_type=kind)
    )
    assert run(stream.map(repr)) == ["([Row(f0='a', f1=1), None], {'k': Row(f0='b', f1=1)}, Row(f0=Row(f0='c', f1=1)))"]


def test_rows_of_a_side_output_have_names() -> None:
    aside = OutputTag("aside", PAIR)

    class Split(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield aside, Row("a", value)

    assert run(checkpointed().from_collection([1]).process(Split()).get_side_output(aside).map(repr)) == [
        "Row(f0='a', f1=1)"
    ]


@pytest.mark.parametrize("method", ["sum", "max", "max_by"])
def test_aggregations_by_the_names_of_the_type(method: str) -> None:
    rows = checkpointed().from_collection([Row("a", 1), Row("a", 2)], PAIR).key_by(lambda row: row.f0)
    assert run(getattr(rows, method)("f1"))[-1] == Row(f0="a", f1=3 if method == "sum" else 2)


def test_a_row_that_does_not_fit_its_type_is_refused_in_a_chain_too() -> None:
    stream = checkpointed().from_collection([1]).map(lambda n: Row(other=n, name="a"), output_type=PAIR).map(repr)
    with pytest.raises(OperatorFailure) as failure:
        run(stream)
    assert isinstance(failure.value.__cause__, TypeMismatchError)
    assert str(failure.value.__cause__) == (
        "Row(other=1, name='a') does not fit its declared type Row<String, Long>: "
        "Field names ['f0', 'f1'] do not exist in ['other', 'name']."
    )
    with pytest.raises(OperatorFailure) as failure:
        run(checkpointed().from_collection([1]).map(lambda n: Row(n), output_type=PAIR).map(repr))
    assert "it has 1 fields where the type has 2" in str(failure.value.__cause__)


def test_what_a_function_does_to_a_row_that_it_has_emitted_changes_nothing() -> None:
    class Reuses(MapFunction):
        row = Row("a", 0)

        def map(self, value: int) -> Row:
            self.row[1] = value
            return self.row

    for kind in (PAIR, NAMED):
        assert [
            row[1] for row in run(checkpointed().from_collection([1, 2, 3]).map(Reuses(), kind).map(lambda r: r))
        ] == [
            1,
            2,
            3,
        ]


# -- state ------------------------------------------------------------------------------------------------------------


class Larger(ReduceFunction):
    def reduce(self, value1: Row, value2: Row) -> Row:
        return Row(value1.f0, max(value1.f1, value2.f1))


class Total(AggregateFunction):
    def create_accumulator(self) -> Row:
        return Row("total", 0)

    def add(self, value: int, accumulator: Row) -> Row:
        return Row(accumulator.f0, accumulator.f1 + value)

    def get_result(self, accumulator: Row) -> str:
        return shown(accumulator)

    def merge(self, acc_a: Row, acc_b: Row) -> Row:
        return Row(acc_a.f0, acc_a.f1 + acc_b.f1)


class Remembers(KeyedProcessFunction):
    """Puts rows without names into state of each kind and emits the rows that it reads back."""

    def __init__(self, expires: bool) -> None:
        self._expires = expires

    def open(self, runtime_context: Any) -> None:
        descriptors: list[Any] = [
            ValueStateDescriptor("value", PAIR),
            ListStateDescriptor("list", PAIR),
            MapStateDescriptor("map", PAIR, PAIR),
            ReducingStateDescriptor("reducing", Larger(), PAIR),
            AggregatingStateDescriptor("aggregating", Total(), PAIR),
        ]
        if self._expires:
            for each in descriptors:
                each.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_days(1)).build())
        value, listed, mapped, reducing, aggregating = descriptors
        self.value = runtime_context.get_state(value)
        self.list = runtime_context.get_list_state(listed)
        self.map = runtime_context.get_map_state(mapped)
        self.reducing = runtime_context.get_reducing_state(reducing)
        self.aggregating = runtime_context.get_aggregating_state(aggregating)

    def process_element(self, value: int, ctx: Any) -> Any:
        found = [*([] if value == 0 else [self.value.value()]), *self.list]
        found += [each for pair in self.map.items() for each in pair]
        if value:
            found += [self.map.get(Row("k", 1)), self.map[("k", 1)], self.reducing.get()]
            assert Row("k", 1) in self.map
        yield [shown(row) for row in found], self.aggregating.get()
        self.value.update(Row("v", value))
        self.list.add(Row("l", value))
        self.list.add_all([("m", value)])
        self.map.put(Row("k", 1), Row("w", value))
        self.reducing.add(Row("r", value))
        self.aggregating.add(value)


@pytest.mark.parametrize("expires", [False, True], ids=["for ever", "with a time to live"])
def test_rows_in_state_have_names_before_and_after_a_restore(expires: bool) -> None:
    def job(restore: Any = None) -> InProcessJob:
        stream = checkpointed().from_collection([0, 1, 2], Types.LONG()).key_by(lambda n: 0).process(Remembers(expires))
        return InProcessJob.of(stream, restore=restore, max_records=2)

    undisturbed = job().run()
    assert all("Row(f0=" in text for texts, _ in undisturbed for text in texts)
    assert undisturbed[-1][1] == "Row(f0='total', f1=1) {'f0': 'total', 'f1': 1}"
    first = job()
    checkpoint = first.checkpoint()
    first.kill()
    assert [*checkpoint.results, *job(checkpoint).run()] == undisturbed


def test_an_accumulator_of_a_window_has_the_names_of_its_type() -> None:
    numbers = checkpointed().from_collection([1, 2, 3], Types.LONG())
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, time: number)
    windows = (
        numbers.assign_timestamps_and_watermarks(strategy)
        .key_by(lambda n: 0)
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
    )
    assert run(windows.aggregate(Total(), accumulator_type=PAIR)) == ["Row(f0='total', f1=6) {'f0': 'total', 'f1': 6}"]


# -- keys -------------------------------------------------------------------------------------------------------------


class Counts(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield value[0], self.count.value(), repr(ctx.get_current_key())


@pytest.mark.parametrize(
    ("key_type", "names"), [(None, None), (PAIR, ("f0", "f1")), (NAMED, ("word", "count"))], ids=str
)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_row_as_key_finds_its_state_after_a_restore(
    key_type: TypeInformation | None, names: tuple[str, str] | None, parallelism: int
) -> None:
    def job(subtasks: int, restore: Any = None) -> InProcessJob:
        words = checkpointed(subtasks).from_collection([(word, 1) for word in "abcabcabc"])
        keyed = words.key_by(lambda pair: Row(*pair), key_type).process(Counts())
        return InProcessJob.of(keyed, restore=restore, max_records=5)

    first = job(1)
    checkpoint = first.checkpoint()
    first.kill()
    results = [*checkpoint.results, *job(parallelism, checkpoint).run()]
    key = "<Row({!r}, 1)>" if names is None else f"Row({names[0]}={{!r}}, {names[1]}=1)"
    assert sorted(results) == [(word, n, key.format(word)) for word in "abc" for n in (1, 2, 3)]
