"""The promises of each kind of function, in process: with the same tasks and chunks as on Spark."""

from __future__ import annotations

import pytest

from rekindle.common import Row, Types
from rekindle.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
)
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rekindle.errors import StateAccessError
from rekindle.graph.build import build_plan
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import environment

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


def run(stream) -> list:
    job = InProcessJob.of(stream)
    results = job.run()
    assert sorted(job.sent) == sorted(job.received), "I3: what was sent was received"
    return results


class Rich(MapFunction):
    """Emits facts from the runtime context."""

    def open(self, runtime_context):
        self.context = runtime_context
        self.instance = object()
        self.records = 0

    def map(self, value):
        self.records += 1
        context = self.context
        return (
            context.get_index_of_this_subtask(),
            context.get_number_of_parallel_subtasks(),
            context.get_max_number_of_parallel_subtasks(),
            context.get_attempt_number(),
            context.get_task_name(),
            context.get_task_name_with_subtasks(),
            self.records,
        )


def test_map_function_is_rich_and_has_one_instance_per_subtask():
    stream = environment(3).from_collection(range(6)).rebalance().map(Rich()).name("rich").set_max_parallelism(16)
    results = sorted(run(stream))
    assert results == sorted(
        (subtask, 3, 16, 0, "rich", f"rich ({subtask + 1}/3)", count) for subtask in range(3) for count in (1, 2)
    )


def test_plain_callables_filter_and_flat_map():
    stream = environment(2).from_collection(range(10)).filter(lambda n: n % 2).flat_map(lambda n: [n] * n)
    assert sorted(run(stream)) == [1] + [3] * 3 + [5] * 5 + [7] * 7 + [9] * 9


class Evens(FilterFunction):
    def filter(self, value):
        return value % 2 == 0


class Twice(FlatMapFunction):
    def flat_map(self, value):
        yield value
        yield value


def test_filter_and_flat_map_functions():
    assert sorted(run(environment(2).from_collection([1, 2, 3, 4]).filter(Evens()).flat_map(Twice()))) == [2, 2, 4, 4]


def test_flat_map_may_return_nothing_at_all():
    assert run(environment(2).from_collection([1, 2]).flat_map(lambda n: None if n == 1 else [n])) == [2]


def test_a_flat_map_of_a_thousand_stays_in_bounds():
    """I5: outputs are cut into chunks as they come, whatever the function multiplies."""
    stream = environment(2).from_sequence(1, 300).flat_map(lambda n: range(1000)).key_by(lambda n: n).reduce(max)
    assert len(run(stream)) == 300_000


class Sum(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


def test_reduce_emits_every_step_in_the_order_of_the_key():
    records = [("a", n) for n in range(1, 6)] + [("b", 10)]
    results = run(environment(2).from_collection(records, PAIR).key_by(lambda p: p[0]).reduce(Sum()))
    assert [value for key, value in results if key == "a"] == [1, 3, 6, 10, 15]
    assert [value for key, value in results if key == "b"] == [10]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [("sum", [3, 4, 9]), ("min", [3, 1, 1]), ("max", [3, 3, 5])],
)
def test_rolling_aggregations(aggregate, expected):
    stream = environment(2).from_collection([("a", 3), ("a", 1), ("a", 5)], PAIR).key_by(lambda p: p[0])
    assert [value for _, value in run(getattr(stream, aggregate)(1))] == expected


class KeyOf(KeySelector):
    def get_key(self, value):
        return value[0]


class CountPerKey(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def test_keyed_process_has_state_per_key():
    records = [("a", 0), ("b", 0), ("a", 0), ("a", 0)]
    results = run(environment(2).from_collection(records).key_by(KeyOf()).process(CountPerKey()))
    assert sorted(results) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class EveryState(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))
        self.by_parity = runtime_context.get_map_state(MapStateDescriptor("parity", Types.LONG(), Types.LONG()))
        self.max = runtime_context.get_reducing_state(ReducingStateDescriptor("max", max, Types.LONG()))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Total(), None))

    def process_element(self, value, ctx):
        number = value[1]
        before = self.last.value()
        self.last.update(number)
        self.all.add(number)
        self.by_parity.put(number % 2, (self.by_parity.get(number % 2) or 0) + 1)
        self.max.add(number)
        self.mean.add(number)
        yield value[0], before, list(self.all.get()), sorted(self.by_parity.items()), self.max.get(), self.mean.get()
        if number == 0:
            for state in (self.last, self.all, self.by_parity, self.max, self.mean):
                state.clear()


def test_every_kind_of_keyed_state():
    records = [("a", 4), ("a", 0), ("a", 7), ("b", 1)]
    results = run(environment(2).from_collection(records).key_by(KeyOf()).process(EveryState()))
    assert [each for each in results if each[0] == "a"] == [
        ("a", None, [4], [(0, 1)], 4, 4.0),
        ("a", 4, [4, 0], [(0, 2)], 4, 2.0),
        ("a", None, [7], [(1, 1)], 7, 7.0),
    ]
    assert [each for each in results if each[0] == "b"] == [("b", None, [1], [(1, 1)], 1, 1.0)]


class KeyedMap(MapFunction):
    """Keyed state from a plain map on a keyed stream, as the text's count per key does."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("myCount", Types.LONG()))

    def map(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return value[0], self.count.value()


def test_a_map_function_on_a_keyed_stream_has_state():
    results = run(environment(2).from_collection([("a", 1), ("b", 1), ("a", 1)]).key_by(KeyOf()).map(KeyedMap()))
    assert sorted(results) == [("a", 1), ("a", 2), ("b", 1)]


def test_state_without_a_key_is_refused_with_a_sentence():
    with pytest.raises(OperatorFailure) as caught:
        run(environment(2).from_collection([("a", 1)]).map(KeyedMap()))
    assert isinstance(caught.value.__cause__, StateAccessError)
    assert "call key_by(...) before it" in str(caught.value.__cause__)


class ReadsInOpen(KeyedMap):
    def open(self, runtime_context):
        super().open(runtime_context)
        self.count.value()


def test_state_in_open_is_refused_with_a_sentence():
    with pytest.raises(OperatorFailure) as caught:
        run(environment(2).from_collection([("a", 1)]).key_by(KeyOf()).map(ReadsInOpen()))
    assert isinstance(caught.value.__cause__, StateAccessError)


ODD, BIG = OutputTag("odd", Types.LONG()), OutputTag("big")


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield ODD, value
        else:
            yield value
        if value > 7:
            yield BIG, f"big {value}"


def test_side_outputs_reach_their_stream_and_no_other():
    env = environment(2)
    main = env.from_sequence(1, 10).process(Split(), Types.LONG())
    odd, big = main.get_side_output(ODD).map(lambda n: ("odd", n)), main.get_side_output(BIG).map(lambda t: ("big", t))
    results = run(main.map(lambda n: ("even", n)).union(odd, big))
    assert sorted(results, key=str) == sorted(
        [("even", n) for n in range(2, 11, 2)]
        + [("odd", n) for n in range(1, 10, 2)]
        + [("big", f"big {n}") for n in (8, 9, 10)],
        key=str,
    )


def test_a_side_output_that_nobody_reads_is_dropped():
    assert sorted(run(environment(2).from_sequence(1, 6).process(Split()))) == [2, 4, 6]


class Label(CoMapFunction):
    def map1(self, value):
        return "left", value

    def map2(self, value):
        return "right", value


class Repeat(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from ["left"] * value

    def flat_map2(self, value):
        return ["right"] * value


def test_co_map_and_co_flat_map():
    env = environment(2)
    assert sorted(run(env.from_collection([1, 2]).connect(env.from_collection([3])).map(Label()))) == [
        ("left", 1),
        ("left", 2),
        ("right", 3),
    ]
    env = environment(2)
    assert sorted(run(env.from_collection([2]).connect(env.from_collection([1])).flat_map(Repeat()))) == [
        "left",
        "left",
        "right",
    ]


class Both(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, value, ctx.timestamp()

    def process_element2(self, value, ctx):
        yield 2, value, ctx.timestamp()


def test_co_process():
    env = environment(2)
    results = run(env.from_collection(["a"]).connect(env.from_collection(["b"])).process(Both()))
    assert sorted(results) == [(1, "a", None), (2, "b", None)]


class Join(KeyedCoProcessFunction):
    """Pairs the two sides by key, whichever comes first."""

    def open(self, runtime_context):
        self.left = runtime_context.get_state(ValueStateDescriptor("left", Types.LONG()))
        self.right = runtime_context.get_state(ValueStateDescriptor("right", Types.LONG()))

    def process_element1(self, value, ctx):
        self.left.update(value[1])
        yield from self.joined(ctx)

    def process_element2(self, value, ctx):
        self.right.update(value[1])
        yield from self.joined(ctx)

    def joined(self, ctx):
        if self.left.value() is not None and self.right.value() is not None:
            yield ctx.get_current_key(), self.left.value(), self.right.value()


def test_keyed_co_process_shares_state_between_both_inputs():
    env = environment(2)
    left = env.from_collection([("a", 1), ("b", 2)])
    right = env.from_collection([("b", 20), ("a", 10), ("c", 30)])
    assert sorted(run(left.connect(right).key_by(KeyOf(), KeyOf()).process(Join()))) == [("a", 1, 10), ("b", 2, 20)]


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class ApplyRule(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        limit = ctx.get_broadcast_state(RULES).get("limit")
        yield "element", value, limit

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        yield "rule", value, None


def test_a_broadcast_reaches_each_subtask_once():
    env = environment(3)
    rules = env.from_collection([("limit", 5)]).broadcast(RULES)
    results = run(env.from_sequence(1, 6).connect(rules).process(ApplyRule()))
    assert [each for each in results if each[0] == "rule"] == [("rule", ("limit", 5), None)] * 3
    assert sorted(each[1] for each in results if each[0] == "element") == [1, 2, 3, 4, 5, 6]


class WritesOnTheWrongSide(ApplyRule):
    def process_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put("limit", 1)
        yield value


def test_the_non_broadcast_side_reads_only():
    env = environment(2)
    stream = env.from_sequence(1, 2).connect(env.from_collection([("limit", 5)]).broadcast(RULES))
    with pytest.raises(OperatorFailure) as caught:
        run(stream.process(WritesOnTheWrongSide()))
    assert "rules" in str(caught.value.__cause__)


class KeyedRule(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        self.seen.update((self.seen.value() or 0) + 1)
        yield ctx.get_current_key(), self.seen.value()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)


def test_keyed_broadcast_process_has_keyed_state():
    env = environment(2)
    rules = env.from_collection([("limit", 5)]).broadcast(RULES)
    results = run(
        env.from_collection([("a", 1), ("a", 2), ("b", 1)]).key_by(KeyOf()).connect(rules).process(KeyedRule())
    )
    assert sorted(results) == [("a", 1), ("a", 2), ("b", 1)]


COUNTED = ValueStateDescriptor("counted", Types.LONG())


class Nested(KeyedBroadcastProcessFunction):
    """Visits the state of all keys for each key, or fails there, then goes on with its own key."""

    def __init__(self, fails):
        self.fails = fails

    def open(self, runtime_context):
        self.counted = runtime_context.get_state(COUNTED)

    def process_element(self, value, ctx):
        self.counted.update(value)
        return ()

    def process_broadcast_element(self, value, ctx):
        told = []

        def one(key, state):
            found = {}
            try:
                ctx.apply_to_keyed_state(COUNTED, lambda other, theirs: self.look(found, other, theirs))
            except KeyError:
                assert self.fails
            state.update(state.value() * 10)
            told.append((key, self.counted.value(), dict(found)))

        ctx.apply_to_keyed_state(COUNTED, one)
        with pytest.raises(StateAccessError):
            self.counted.value()
        return told

    def look(self, found, key, state):
        if self.fails:
            raise KeyError(key)
        found[key] = state.value()
        state.clear()
        state.update(found[key])


@pytest.mark.parametrize("fails", [False, True])
def test_apply_to_keyed_state_inside_another_keeps_the_outer_key(fails):
    env = environment(1)
    rules = env.from_collection([("limit", 5)]).broadcast(RULES)
    stream = env.from_collection([1, 2, 3], int).key_by(lambda n: n, int).connect(rules).process(Nested(fails))
    told = run(stream)
    assert sorted((key, own) for key, own, _ in told) == [(1, 10), (2, 20), (3, 30)]
    values = {1: 1, 2: 2, 3: 3}
    for key, own, seen in told:
        assert seen == ({} if fails else values)
        values[key] = own


class ByParity(Partitioner):
    def partition(self, key, num_partitions):
        return key % 2


class TagSubtask(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.subtask, value


@pytest.mark.parametrize(
    ("partitioned", "subtasks"),
    [
        (lambda s: s.partition_custom(ByParity(), lambda n: n), {n: {n % 2} for n in range(1, 9)}),
        (lambda s: s.broadcast(), {n: {0, 1, 2} for n in range(1, 9)}),
        (lambda s: s.rebalance(), {n: {n % 3} for n in range(1, 9)}),
    ],
)
def test_partitionings_between_operators(partitioned, subtasks):
    source = environment(3).from_collection(range(1, 9)).name("one")
    got: dict[int, set[int]] = {}
    for subtask, number in run(partitioned(source).map(TagSubtask())):
        got.setdefault(number, set()).add(subtask)
    assert got == subtasks


def test_shuffle_rescale_and_forward_lose_nothing():
    for method in ("shuffle", "rescale", "forward"):
        stream = getattr(environment(2).from_sequence(1, 100), method)().map(TagSubtask()).disable_chaining()
        results = run(stream)
        assert sorted(number for _, number in results) == list(range(1, 101)), method
        assert {subtask for subtask, _ in results} == {0, 1}, method


def test_union_of_three_streams():
    env = environment(2)
    one, two, three = (env.from_collection([n], Types.LONG()) for n in (1, 2, 3))
    assert sorted(run(one.union(two, three).map(lambda n: n * 10))) == [10, 20, 30]


def test_rows_by_name_and_position():
    row_type = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
    rows = [Row(name="a", amount=1), Row(name="a", amount=2)]
    stream = environment(2).from_collection(rows, row_type).key_by(lambda row: row.name).sum("amount")
    assert [row["amount"] for row in run(stream)] == [1, 3]


def test_a_declared_type_that_does_not_fit_is_named():
    stream = environment(2).from_sequence(1, 3).map(lambda n: "text", Types.LONG()).key_by(lambda n: n).reduce(max)
    with pytest.raises(Exception) as caught:
        run(stream)
    story = f"{caught.value} {caught.value.__cause__}"
    assert "Long" in story or "int" in story


def test_the_failing_record_is_named():
    with pytest.raises(OperatorFailure) as caught:
        run(environment(2).from_collection([4, 2, 0, 1]).map(lambda n: 10 // n).name("divide"))
    assert (caught.value.operator, caught.value.record) == ("divide", 0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


class KeyedSink(SinkFunction):
    """Counts per key in keyed state, and adds the values to accumulators."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.context = runtime_context

    def invoke(self, value, context):
        self.count.update((self.count.value() or 0) + 1)
        self.context.get_int_counter(f"{value[0]}{self.count.value()}").add(1)


def test_a_sink_on_a_keyed_stream_has_state():
    env = environment(2)
    env.from_collection([("a", 1), ("b", 1), ("a", 2)]).key_by(KeyOf()).add_sink(KeyedSink())
    job = InProcessJob(build_plan(env._program("sink")))
    job.run()
    assert job.accumulators.values == {"a1": 1, "a2": 1, "b1": 1}
