"""Window joins and co-groups: Flink's documented examples, triggers, evictors, lateness and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rekindle.common import Row, Time, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import (
    CoGroupFunction,
    CountEvictor,
    CountTrigger,
    DataStream,
    FlatJoinFunction,
    GlobalWindows,
    JoinFunction,
    KeySelector,
    OutputTag,
    ProcessFunction,
    TaggedUnion,
    TaggedUnionTypeInfo,
)
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.window import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rekindle.errors import GraphError, TypeMismatchError
from rekindle.graph.build import build_plan
from rekindle.serde import codec_for, value_codec_for
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import environment
from tests.support.window_driver import WindowDriver
from tests.unit.runtime.operators.windows.window_samples import TEN, both

ITSELF = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
ONE, TWO = TaggedUnion.one, TaggedUnion.two


def times(env, numbers, typed=True) -> DataStream:
    return env.from_collection(numbers, int if typed else None).assign_timestamps_and_watermarks(ITSELF)


def two_streams(type_info=PAIR):
    """Streams of (key, number), whose elements come from a driver."""
    env = environment()
    return env.from_collection([("", 0)], type_info), env.from_collection([("", 0)], type_info)


def by_key(pair_of_streams):
    return pair_of_streams.where(lambda pair: pair[0], str).equal_to(lambda pair: pair[0])


def joined(assigner=TEN, type_info=PAIR):
    one, two = two_streams(type_info)
    return by_key(one.join(two)).window(assigner)


def grouped(assigner=TEN, type_info=PAIR):
    one, two = two_streams(type_info)
    return by_key(one.co_group(two)).window(assigner)


class Groups(CoGroupFunction):
    def co_group(self, first, second):
        yield [number for _, number in first], [number for _, number in second]


# -- Flink's examples -------------------------------------------------------------------------------------------------


class WithComma(JoinFunction):
    def join(self, first, second):
        return f"{first},{second}"


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    ("assigner", "orange", "green", "expected"),
    [
        (
            TumblingEventTimeWindows.of(Time.milliseconds(2)),
            range(8),
            [0, 1, 3, 4],
            ["0,0", "0,1", "1,0", "1,1", "2,3", "3,3", "4,4", "5,4"],
        ),
        (
            SlidingEventTimeWindows.of(Time.milliseconds(2), Time.milliseconds(1)),
            range(5),
            [0, 3, 4],
            ["0,0", "0,0", "1,0", "2,3", "3,3", "3,3", "3,4", "4,3", "4,4", "4,4"],
        ),
        (
            EventTimeSessionWindows.with_gap(Time.milliseconds(1)),
            [1, 2, 5, 6, 8, 9],
            [0, 4, 5],
            ["1,0", "2,0", "5,4", "5,5", "6,4", "6,5"],
        ),
    ],
    ids=["tumbling", "sliding", "session"],
)
def test_flinks_examples(assigner, orange, green, expected, parallelism, typed):
    """Pairs of a key and window as in an inner join; an element without a partner in its window is not emitted."""
    env = environment(parallelism)
    first, second = times(env, orange, typed), times(env, green, typed)
    pairs = first.join(second).where(lambda _: "all", str).equal_to(lambda _: "all", str).window(assigner)
    assert sorted(InProcessJob.of(pairs.apply(WithComma(), str), max_records=2).run()) == expected


def test_a_result_has_the_last_millisecond_of_its_window_as_its_timestamp():
    """With the window [5, 10) that is 9."""

    class WithTime(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    env = environment()
    keyed = times(env, [5, 8]).join(times(env, [6])).where(lambda _: 0).equal_to(lambda _: 0)
    stamped = keyed.window(TumblingEventTimeWindows.of(5)).apply(lambda one, two: one + two).process(WithTime())
    assert InProcessJob.of(stamped).run() == [(11, 9), (14, 9)]


def test_each_key_is_joined_with_itself_only():
    env = environment(3)
    numbers = times(env, range(12)).join(times(env, range(0, 12, 2)))
    keyed = numbers.where(lambda n: n % 3, int).equal_to(lambda n: n % 3, int)
    pairs = keyed.window(TumblingEventTimeWindows.of(6)).apply(lambda one, two: (one, two))
    every = [(one, two) for one in range(12) for two in range(0, 12, 2)]
    expected = [(one, two) for one, two in every if one % 3 == two % 3 and one // 6 == two // 6]
    assert sorted(InProcessJob.of(pairs, max_records=2).run()) == expected


# -- functions --------------------------------------------------------------------------------------------------------


@both
def test_a_co_group_sees_what_has_no_partner(general):
    windows = WindowDriver(grouped().apply(Groups()), general=general)
    windows.batch([(ONE(("a", 1)), 1), (TWO(("b", 2)), 2), (TWO(("c", 3)), 3), (ONE(("c", 4)), 4), (ONE(("c", 5)), 5)])
    assert windows.watermark(9) == [(([1], []), 9), (([], [2]), 9), (([4, 5], [3]), 9)]


def test_a_flat_join_gives_any_number_of_results():
    class Repeated(FlatJoinFunction):
        def join(self, first, second):
            return None if first[1] > second[1] else [first[1]] * second[1]

    windows = WindowDriver(joined().apply(Repeated()))
    windows.batch([(ONE(("a", 1)), 1), (ONE(("a", 2)), 1), (ONE(("a", 9)), 1), (TWO(("a", 2)), 1), (TWO(("a", 1)), 1)])
    assert windows.watermark(9) == [(1, 9), (1, 9), (1, 9), (2, 9), (2, 9)]


def test_the_pairs_of_a_window_come_in_the_order_of_their_elements():
    windows = WindowDriver(joined().apply(lambda one, two: (one[1], two[1])))
    windows.batch([(TWO(("a", 3)), 1), (ONE(("a", 2)), 1), (ONE(("a", 1)), 1), (TWO(("a", 4)), 1)])
    assert windows.watermark(9) == [((2, 3), 9), ((2, 4), 9), ((1, 3), 9), ((1, 4), 9)]


def test_a_function_is_opened_has_state_of_its_key_and_is_closed():
    class Numbered(CoGroupFunction):
        """How many windows the key has had."""

        def open(self, runtime_context):
            self.windows = runtime_context.get_state(ValueStateDescriptor("windows", int))

        def co_group(self, first, second):
            self.windows.update((self.windows.value() or 0) + 1)
            return [(len(first), len(second), self.windows.value())]

        def close(self):
            self.closed = True

    windows = WindowDriver(grouped().apply(Numbered()))
    windows.batch([(ONE(("a", 1)), 1), (TWO(("a", 1)), 12), (TWO(("b", 1)), 15)])
    assert windows.watermark(20) == [((1, 0, 1), 9), ((0, 1, 2), 19), ((0, 1, 1), 19)]
    windows.operator.close()
    assert windows.operator.function._function.closed


def test_a_function_takes_part_in_checkpoints():
    """The operator state of the join function is in the snapshot and is restored."""

    class Counting(JoinFunction):
        seen = 0

        def snapshot_state(self, checkpoint_id, timestamp):
            return [self.seen]

        def restore_state(self, state):
            self.seen = sum(state)

        def join(self, first, second):
            self.seen += 1
            return self.seen

    def program():
        env = environment()
        env.enable_checkpointing(1_000)
        keyed = times(env, range(0, 60, 5)).join(times(env, range(60))).where(lambda _: 0).equal_to(lambda _: 0)
        return keyed.window(TumblingEventTimeWindows.of(10)).apply(Counting())

    job = InProcessJob.of(program(), max_records=5)
    collected = []
    for _ in range(4):
        checkpoint = job.checkpoint()
        collected += checkpoint.results
    job.epoch()
    job.kill()
    assert collected, "the checkpoint is to be one in the middle"
    restored = InProcessJob.of(program(), max_records=5, restore=checkpoint)
    assert collected + restored.run() == list(range(1, 121))


def test_keyed_streams_rows_and_key_selector_classes_can_be_joined():
    class Name(KeySelector):
        def get_key(self, value):
            return value.name

    env = environment(2)
    type_info = Types.ROW_NAMED(["name", "time"], [Types.STRING(), Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row.time)
    rows = env.from_collection([Row(name=name, time=time) for time, name in enumerate("abca")], type_info)
    timed = rows.assign_timestamps_and_watermarks(strategy)
    keyed = timed.key_by(lambda row: row.time)
    pairs = keyed.join(timed).where(Name(), str).equal_to(Name(), str).window(TEN).apply(lambda a, b: (a.time, b.time))
    assert sorted(InProcessJob.of(pairs).run()) == [(0, 0), (0, 3), (1, 1), (2, 2), (3, 0), (3, 3)]


# -- windows ----------------------------------------------------------------------------------------------------------


@both
def test_elements_of_both_streams_make_one_session(general):
    windows = WindowDriver(grouped(EventTimeSessionWindows.with_gap(5)).apply(Groups()), general=general)
    windows.batch([(ONE(("a", 1)), 0), (ONE(("a", 2)), 8), (TWO(("a", 3)), 4), (TWO(("a", 4)), 30)])
    assert windows.watermark(12) == [(([1, 2], [3]), 12)]
    assert windows.watermark(MAX_WATERMARK) == [(([], [4]), 34)]


@both
def test_a_late_element_of_one_stream_fires_with_all_of_the_other(general):
    """The window accumulates: the earlier pairs are emitted again."""
    windows = WindowDriver(joined().allowed_lateness(5).apply(lambda one, two: (one[1], two[1])), general=general)
    windows.batch([(ONE(("a", 1)), 1), (TWO(("a", 2)), 2)])
    assert windows.watermark(9) == [((1, 2), 9)]
    assert windows.element(TWO(("a", 3)), 4) == [((1, 2), 9), ((1, 3), 9)]
    windows.watermark(14)
    assert windows.element(TWO(("a", 4)), 4) == []
    assert windows.late_dropped == 1
    assert windows.rows() == 0


def test_what_is_too_late_goes_to_the_side_with_its_tag():
    late = OutputTag("late", TaggedUnionTypeInfo(PAIR, PAIR))
    stream = joined().side_output_late_data(late).apply(lambda one, two: (one, two))
    stream.get_side_output(late)
    windows = WindowDriver(stream, side_output="late")
    windows.watermark(9)
    ((tag, element, time),) = windows.element(TWO(("a", 1)), 3)
    assert (tag, element.is_two(), element.get_two(), time) == ("late", True, ("a", 1), 3)


def test_triggers_evictors_and_assigners_see_tagged_elements():
    """The last three elements of both streams, each time that two have come; of both, or of either."""
    windowed = grouped(GlobalWindows.create()).trigger(CountTrigger.of(2)).evictor(CountEvictor.of(3))
    windows = WindowDriver(windowed.apply(Groups()))
    fired = [windows.element(tagged(("a", n))) for n, tagged in enumerate([ONE, ONE, TWO, ONE, TWO, TWO])]
    assert [[groups for groups, _ in each] for each in fired if each] == [
        [([0, 1], [])],
        [([1, 3], [2])],
        [([3], [4, 5])],
    ]
    gaps = EventTimeSessionWindows.with_dynamic_gap(lambda element: 3 if element.is_one() else 20)
    windows = WindowDriver(grouped(gaps).apply(Groups()))
    windows.batch([(ONE(("a", 1)), 0), (TWO(("a", 2)), 5), (ONE(("a", 3)), 24)])
    assert windows.watermark(MAX_WATERMARK) == [(([1], []), 2), (([3], [2]), 26)]


def test_a_purging_trigger_joins_each_element_once():
    purging = PurgingTrigger.of(CountTrigger.of(2))
    windows = WindowDriver(joined(GlobalWindows.create()).trigger(purging).apply(lambda one, two: (one[1], two[1])))
    fired = [windows.element(tagged(("a", n))) for n, tagged in enumerate([ONE, TWO, ONE, TWO])]
    assert [[pair for pair, _ in each] for each in fired] == [[], [(0, 1)], [], [(2, 3)]]


@pytest.mark.parametrize(
    "assigner", [TumblingProcessingTimeWindows.of(1_000), ProcessingTimeSessionWindows.with_gap(1_000)]
)
def test_windows_of_processing_time(assigner):
    clock = ManualClock(2_000)
    windows = WindowDriver(joined(assigner).apply(lambda one, two: (one[1], two[1])), clock)
    windows.element(ONE(("a", 1)))
    assert windows.pass_time(500) == []
    windows.element(TWO(("a", 2)))
    assert [pair for pair, _ in windows.pass_time(1_000)] == [(1, 2)]
    windows.element(TWO(("a", 3)))
    assert windows.pass_time(2_000) == []
    assert windows.rows() == 0


# -- types ------------------------------------------------------------------------------------------------------------


@dataclass
class Order:
    customer: str
    item: str


@dataclass
class LateOrder(Order):
    days: int = 1


@pytest.mark.parametrize(
    ("one", "two", "elements"),
    [
        (str, int, ["a", None]),
        (Order, Types.LIST(Types.BIG_INT()), [Order("ann", "pen"), None]),
        (Types.ROW_NAMED(["a", "b"], [str, int]), Types.SQL_DATE(), [Row(a="x", b=1)]),
        (Types.PICKLED_BYTE_ARRAY(), str, [{1, 2}, object]),
    ],
)
def test_tagged_elements_come_back_from_the_wire_and_from_state(one, two, elements):
    """Even None as an element keeps the stream from which it came."""
    for type_info, tagged in ((TaggedUnionTypeInfo(one, two), ONE), (TaggedUnionTypeInfo(two, one), TWO)):
        records = [tagged(element) for element in elements]
        codec, values = codec_for(type_info), value_codec_for(type_info, allow_pickle=True)
        for found in (codec.decode(codec.encode(records)), values.decode_all(values.encode_all(records))):
            assert found == records
            assert [type(each) for each in found] == [TaggedUnion] * len(records)


def test_known_types_stay_known():
    """Tagged elements of known types are sent and stored without pickle, and need no copies."""
    one, two = two_streams()
    windows = by_key(one.join(two)).window(TEN).apply(lambda a, b: 0)
    operation = windows._upstreams[0].transformation.function
    assert str(operation.input_type) == "TaggedUnion<Tuple<String, Long>, Tuple<String, Long>>"
    assert codec_for(operation.input_type).name == "msgpack"
    undeclared = by_key(one.join(two.map(lambda pair: pair))).window(TEN).apply(lambda a, b: 0)
    assert undeclared._upstreams[0].transformation.function.input_type is None


def test_elements_without_a_type_are_kept_without_pickle_where_that_is_possible():
    codec = value_codec_for(None)
    assert codec.decode(codec.encode(ONE(("a", {1})))) == ONE(("a", {1}))


def test_a_subclass_is_refused_as_in_any_stream_of_that_type():
    codec = codec_for(TaggedUnionTypeInfo(Order, str))
    with pytest.raises(TypeMismatchError, match="is no Order"):
        codec.encode([ONE(LateOrder("ann", "pen"))])


def test_none_is_an_element_like_any_other():
    class Seen(CoGroupFunction):
        def co_group(self, first, second):
            yield first, second

    env = environment()
    stamp = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 1)
    some = env.from_collection([None, 1]).assign_timestamps_and_watermarks(stamp)
    keyed = some.co_group(some).where(lambda _: None).equal_to(lambda _: None)
    assert InProcessJob.of(keyed.window(TEN).apply(Seen())).run() == [([None, 1], [None, 1])]


# -- the plan ---------------------------------------------------------------------------------------------------------


def test_tags_are_given_where_the_elements_come_from():
    """The tagging operators chain to the operators before them, so that a join costs one exchange."""
    env = environment(2)
    three = env.from_sequence(1, 9).map(str).set_parallelism(3)
    two = env.from_sequence(1, 9).map(str).key_by(len)
    stream = three.join(two).where(len).equal_to(len).window(TEN).apply(lambda one, other: one).name("texts")
    plan = build_plan(env._program("join", stream._collect()))
    names = {node.id: (node.name, node.parallelism) for node in plan.nodes}
    taggers = [each for each in names.values() if "Input" in each[0]]
    assert taggers == [("Window Join: First Input", 3), ("Window Join: Second Input", 2)]
    exchanged = sorted(names[edge.source][0] for edge in plan.edges if edge.partitioning == "HASH")
    assert exchanged == ["Window Join: First Input", "Window Join: Second Input"]
    (joining,) = [node for node in plan.nodes if node.name == "texts"]
    assert joining.description.startswith("Window Join(TumblingEventTimeWindows(10, 0), EventTimeTrigger()")


def test_only_what_has_state_needs_a_uid():
    env = environment()
    env.get_config().disable_auto_generated_uids()
    numbers = env.from_sequence(1, 9).uid("numbers")
    keyed = numbers.join(numbers).where(lambda n: n).equal_to(lambda n: n)
    keyed.window(TEN).apply(lambda one, two: 0).uid("joined").print().uid("printed")
    plan = build_plan(env._program("join"))
    assert len({node.uid for node in plan.nodes}) == len(plan.nodes)


# -- mistakes ---------------------------------------------------------------------------------------------------------


class Yielding(JoinFunction):
    def join(self, first, second):
        yield first


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (lambda a, b: a.join(b).equal_to(len), r"equal_to\(\) .* comes too early: call where\(\) before it"),
        (lambda a, b: a.join(b).window(TEN), r"window\(\) .* call where\(\) and equal_to\(\) before it"),
        (lambda a, b: a.join(b).apply(max), r"call where\(\), equal_to\(\) and window\(\) before it"),
        (lambda a, b: a.join(b).where(len).window(TEN), r"call equal_to\(\) before it"),
        (lambda a, b: a.co_group(b).where(len).apply(max), r"call equal_to\(\) and window\(\) before it"),
        (lambda a, b: a.join(b).where(len).equal_to(len).apply(max), r"apply\(\) .* call window\(\) before it"),
        (lambda a, b: by_key(a.join(b)).window(10), "takes a WindowAssigner, not 10"),
        (lambda a, b: by_key(a.join(b)).window(TEN).trigger(TEN), "takes a Trigger, not"),
        (lambda a, b: by_key(a.join(b)).window(TEN).apply(Groups()), "a CoGroupFunction belongs in co_group"),
        (lambda a, b: by_key(a.co_group(b)).window(TEN).apply(WithComma()), "a JoinFunction belongs in join"),
        (lambda a, b: by_key(a.join(b)).window(TEN).apply(WithComma), r"takes an instance, .* write WithComma\(\)"),
        (lambda a, b: by_key(a.join(b)).window(TEN).apply(Yielding()), "return it, or use a FlatJoinFunction"),
        (lambda a, b: by_key(a.join(b)).window(TEN).apply(lambda one: one), "is called with 2 arguments"),
        (
            lambda a, b: by_key(a.join(b)).window(EventTimeSessionWindows.with_gap(1)).trigger(Stuck()).apply(max),
            "merges windows, but .* cannot follow",
        ),
        (lambda a, b: a.join([1]), r"join\(\) after 'Collection Source' takes a DataStream, not \[1\]"),
        (lambda a, b: a.join(two_streams()[0]), "streams of the same environment"),
        (lambda a, b: a.join(b).where(3), "takes a KeySelector or a callable, not 3"),
        (
            lambda a, b: a.join(b).where(len, int).equal_to(len, str),
            r"equal_to\(\) .* needs the type of key that where\(\) has: Long, not String",
        ),
    ],
)
def test_a_mistake_is_named(mistake, sentence):
    with pytest.raises((GraphError, TypeMismatchError), match=sentence):
        mistake(*two_streams())


class Stuck(CountTrigger):
    def __init__(self):
        super().__init__(1)

    def can_merge(self):
        return False
