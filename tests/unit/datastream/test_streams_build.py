"""Streams build transformations: names, types, settings, partitionings, side outputs."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rekindle.common import Row, Types, WatermarkStrategy
from rekindle.datastream import (
    KeyedCoProcessFunction,
    OutputTag,
    ParallelSourceFunction,
    ProcessFunction,
    SlotSharingGroup,
    SourceFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.data_stream import DataStream
from rekindle.datastream.state import MapStateDescriptor
from rekindle.datastream.streams.projection import ProjectFunction
from rekindle.datastream.vocabulary import ChainingStrategy, Partitioning
from rekindle.errors import GraphError, TypeMismatchError


class Pass(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Join(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


class Ticks(SourceFunction):
    def run(self, ctx: Any) -> None:
        ctx.collect(1)

    def cancel(self) -> None:
        return None


class ParallelTicks(Ticks, ParallelSourceFunction):
    pass


# -- types ------------------------------------------------------------------------------------------------------------


def test_an_undeclared_type_is_pickled(env: StreamExecutionEnvironment) -> None:
    assert env.from_collection([1]).get_type() == Types.PICKLED_BYTE_ARRAY()


def test_filter_and_partitioning_keep_the_type_and_map_forgets_it(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([1], int)
    assert numbers.filter(bool).rebalance().get_type() == Types.LONG()
    assert numbers.key_by(lambda n: n).reduce(max).get_type() == Types.LONG()
    assert numbers.map(str).get_type() == Types.PICKLED_BYTE_ARRAY()


def test_elements_that_do_not_fit_the_declared_type_fail_at_once(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(TypeMismatchError, match=r"from_collection\(\).*1"):
        env.from_collection([1, "two"], int)


def test_typed_elements_are_what_an_exchange_would_give(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([("a", 1)], Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.LONG()]))
    source = stream._upstreams[0].transformation.function
    assert source.elements == [Row(name="a", n=1)]


@pytest.mark.parametrize("collection", ["text", b"bytes", 5])
def test_a_collection_is_a_list_of_elements(env: StreamExecutionEnvironment, collection: Any) -> None:
    with pytest.raises(GraphError, match="takes a list of elements"):
        env.from_collection(collection)


def test_project_keeps_some_fields(env: StreamExecutionEnvironment) -> None:
    pairs = env.from_collection([("a", 1, 2.0)], tuple[str, int, float])
    assert pairs.project(2, 0).get_type() == Types.TUPLE([Types.DOUBLE(), Types.STRING()])
    with pytest.raises(GraphError, match="has no field 3"):
        pairs.project(3)
    with pytest.raises(TypeMismatchError, match="tuples or rows"):
        env.from_collection([1], int).project(0)
    with pytest.raises(GraphError, match="positions of fields"):
        pairs.project()


def test_project_gives_tuples_and_rows() -> None:
    assert ProjectFunction((1,)).map(("a", "b")) == ("b",)
    assert ProjectFunction((1,)).map(Row(x=1, y=2)) == Row(y=2)


# -- settings ---------------------------------------------------------------------------------------------------------


def test_settings_reach_the_operator(env: StreamExecutionEnvironment) -> None:
    stream = (
        env.from_collection([1])
        .map(str)
        .name("text")
        .uid("text-uid")
        .set_parallelism(3)
        .set_max_parallelism(12)
        .set_buffer_timeout(5)
        .set_description("as text")
        .slot_sharing_group(SlotSharingGroup.builder("own").build())
        .start_new_chain()
    )
    operator = stream._upstreams[0].transformation
    assert (operator.name, operator.uid, operator.parallelism, operator.max_parallelism) == ("text", "text-uid", 3, 12)
    assert (operator.description, operator.slot_sharing_group) == ("as text", "own")
    assert operator.chaining is ChainingStrategy.HEAD
    assert stream.disable_chaining()._upstreams[0].transformation.chaining is ChainingStrategy.NEVER


@pytest.mark.parametrize("parallelism", [0, -1, 2.0, True, "2"])
def test_a_parallelism_is_a_whole_number_of_one_or_more(env: StreamExecutionEnvironment, parallelism: Any) -> None:
    with pytest.raises(GraphError, match="'Map': the parallelism must be a whole number of 1 or more"):
        env.from_collection([1]).map(str).set_parallelism(parallelism)


def test_the_parallelism_is_not_above_its_maximum(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1]).map(str)
    with pytest.raises(GraphError, match="'Map': the parallelism 5 is above its maximum of 4"):
        stream.set_max_parallelism(4).set_parallelism(5)
    with pytest.raises(GraphError, match="between 1 and 32768"):
        stream.set_max_parallelism(40_000)
    with pytest.raises(GraphError, match="above the maximum of 2"):
        stream.set_parallelism(3).set_max_parallelism(2)


def test_a_collection_and_a_plain_source_function_have_parallelism_one(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match="'Collection Source' cannot run in parallel"):
        env.from_collection([1]).set_parallelism(2)
    with pytest.raises(GraphError, match="'Custom Source' cannot run in parallel"):
        env.add_source(Ticks()).set_parallelism(2)
    assert env.add_source(ParallelTicks()).set_parallelism(2)._operator.parallelism == 2  # type: ignore[union-attr]


def test_force_non_parallel_fixes_one(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 2).force_non_parallel()
    with pytest.raises(GraphError, match="must be 1, not 2"):
        stream.set_parallelism(2)


def test_a_uid_is_taken_once(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1])
    stream.map(str).name("first").uid("text")
    with pytest.raises(GraphError, match="uid 'text' of 'second' is taken by 'first'"):
        stream.map(str).name("second").uid("text")


def test_a_uid_may_be_set_again_on_its_own_operator(env: StreamExecutionEnvironment) -> None:
    assert env.from_collection([1]).uid("numbers").uid("numbers").get_name() == "Collection Source"


@pytest.mark.parametrize("uid_hash", ["", "xyz", "0" * 31, 5])
def test_a_uid_hash_is_32_hexadecimal_digits(env: StreamExecutionEnvironment, uid_hash: Any) -> None:
    with pytest.raises(GraphError, match="32 hexadecimal digits"):
        env.from_collection([1]).set_uid_hash(uid_hash)


def test_settings_belong_to_operators_not_to_partitionings(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1])
    with pytest.raises(GraphError, match=r"name\(\) is a setting of an operator"):
        stream.rebalance().name("balanced")
    with pytest.raises(GraphError, match=r"uid\(\) is a setting of an operator"):
        stream.union(env.from_collection([2])).uid("both")
    with pytest.raises(GraphError, match="a KeyedStream is a partitioning"):
        stream.key_by(str).set_parallelism(2)


@pytest.mark.parametrize("method", ["name", "uid"])
def test_names_are_texts(env: StreamExecutionEnvironment, method: str) -> None:
    with pytest.raises(GraphError, match="non-empty string"):
        getattr(env.from_collection([1]), method)("")


# -- partitioning -----------------------------------------------------------------------------------------------------


def partitioning_of(stream: DataStream) -> list[Partitioning | None]:
    return [upstream.partitioning for upstream in stream._upstreams]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("forward", Partitioning.FORWARD),
        ("rebalance", Partitioning.REBALANCE),
        ("rescale", Partitioning.RESCALE),
        ("shuffle", Partitioning.SHUFFLE),
        ("broadcast", Partitioning.BROADCAST),
        ("global_", Partitioning.GLOBAL),
    ],
)
def test_each_partitioning(env: StreamExecutionEnvironment, method: str, expected: Partitioning) -> None:
    stream = env.from_collection([1])
    assert partitioning_of(getattr(stream, method)()) == [expected]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("forward", ()),
        ("rebalance", ()),
        ("rescale", ()),
        ("shuffle", ()),
        ("global_", ()),
        ("broadcast", ()),
        ("broadcast", (MapStateDescriptor("rules", str, int),)),
        ("partition_custom", (lambda key, n: 0, lambda value: value)),
    ],
)
def test_the_partitioning_of_a_keyed_stream_is_not_overridden_in_silence(
    env: StreamExecutionEnvironment, method: str, arguments: tuple[Any, ...]
) -> None:
    keyed = env.from_collection([1]).key_by(str)
    with pytest.raises(GraphError, match=r"^Cannot override partitioning for KeyedStream\.") as refused:
        getattr(keyed, method)(*arguments)
    assert f"{method}() before key_by()" in str(refused.value)


def test_a_keyed_stream_can_be_keyed_anew(env: StreamExecutionEnvironment) -> None:
    twice = env.from_collection([1]).key_by(str).key_by(lambda n: n % 2)
    assert partitioning_of(twice) == [Partitioning.KEY]


def test_the_last_partitioning_counts(env: StreamExecutionEnvironment) -> None:
    assert partitioning_of(env.from_collection([1]).rebalance().shuffle()) == [Partitioning.SHUFFLE]


def test_union_keeps_how_each_stream_is_partitioned(env: StreamExecutionEnvironment) -> None:
    union = env.from_collection([1]).shuffle().union(env.from_collection([2]), env.from_collection([3]).key_by(str))
    assert partitioning_of(union) == [Partitioning.SHUFFLE, None, Partitioning.KEY]
    assert partitioning_of(union.rebalance()) == [Partitioning.REBALANCE] * 3


def test_union_of_different_declared_types_is_refused(env: StreamExecutionEnvironment) -> None:
    numbers, texts = env.from_collection([1], int), env.from_collection(["a"], str)
    with pytest.raises(TypeMismatchError, match="one type, not Long and String"):
        numbers.union(texts)
    assert numbers.union(env.from_collection([2])).get_type() == Types.PICKLED_BYTE_ARRAY()


def test_streams_of_another_environment_are_refused(env: StreamExecutionEnvironment) -> None:
    other = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    with pytest.raises(GraphError, match="same environment"):
        env.from_collection([1]).union(other)
    with pytest.raises(GraphError, match="same environment"):
        env.from_collection([1]).connect(other)


def test_connect_and_union_take_streams(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match="takes a DataStream or a BroadcastStream"):
        env.from_collection([1]).connect([1])  # type: ignore[call-overload]
    with pytest.raises(GraphError, match="takes streams"):
        env.from_collection([1]).union([1])  # type: ignore[arg-type]


def test_keys_of_connected_streams_have_one_type(env: StreamExecutionEnvironment) -> None:
    left = env.from_collection([1]).key_by(lambda n: n, key_type=int)
    right = env.from_collection(["a"]).key_by(lambda s: s, key_type=str)
    with pytest.raises(TypeMismatchError, match="one type of key, not Long and String"):
        left.connect(right).process(Join())


def test_watermark_strategies_are_checked(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match="takes a WatermarkStrategy"):
        env.from_collection([1]).assign_timestamps_and_watermarks(5)  # type: ignore[arg-type]
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    assert env.from_collection([1], int).assign_timestamps_and_watermarks(strategy).get_type() == Types.LONG()


# -- side outputs -----------------------------------------------------------------------------------------------------


def test_tags_are_equal_by_id_and_counted() -> None:
    before = OutputTag.created
    tag = OutputTag("late", int)
    assert (tag, hash(tag)) == (OutputTag("late"), hash(OutputTag("late")))
    assert tag != OutputTag("early")
    assert OutputTag.created == before + 4
    again = pickle.loads(pickle.dumps(tag))
    assert (again, again.type_info, OutputTag.created) == (tag, Types.LONG(), before + 5)


@pytest.mark.parametrize("tag_id", ["", None, 3])
def test_a_tag_has_a_name(tag_id: Any) -> None:
    with pytest.raises(GraphError, match="non-empty string"):
        OutputTag(tag_id)


def test_a_tag_of_several_types_is_a_row() -> None:
    assert OutputTag("rows", [Types.INT(), Types.STRING()]).type_info == Types.ROW([Types.INT(), Types.STRING()])


def test_side_outputs_come_from_process_functions(env: StreamExecutionEnvironment) -> None:
    late = OutputTag("late", int)
    processed = env.from_collection([1]).process(Pass())
    assert processed.get_side_output(late).get_type() == Types.LONG()
    with pytest.raises(GraphError, match="'Map' is no process function"):
        env.from_collection([1]).map(str).get_side_output(late)
    with pytest.raises(GraphError, match="takes an OutputTag"):
        processed.get_side_output("late")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="'late' of 'PROCESS' was read with the type Long before"):
        processed.get_side_output(OutputTag("late", str))


# -- streams cannot be pickled ----------------------------------------------------------------------------------------


def test_environments_and_streams_cannot_be_pickled(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(TypeError, match="stays in the driver"):
        pickle.dumps(env)
    with pytest.raises(TypeError, match="a DataStream stays in the driver"):
        pickle.dumps(env.from_collection([1]))
