"""Wrong functions are refused when the program is built, with an error that names the operator."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rekindle.common import Types
from rekindle.datastream import (
    BroadcastProcessFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.state import MapStateDescriptor
from rekindle.errors import GraphError, TypeMismatchError


class Increment(MapFunction):
    def map(self, value: int) -> int:
        return value + 1


class Positive(FilterFunction):
    def filter(self, value: int) -> bool:
        return value > 0


class Plain(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Keyed(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Both(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


class KeyedBoth(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


class Rules(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return None


class KeyedRules(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return None


RULES = MapStateDescriptor("rules", str, int)


def test_a_function_of_another_kind_is_named_with_the_method_it_belongs_in(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match=r"'Collection Source' takes a MapFunction, not the FilterFunction 'Positive'"):
        env.from_collection([1]).map(Positive())  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"belongs in filter\(\)"):
        env.from_collection([1]).map(Positive())  # type: ignore[arg-type]


def test_keyed_process_functions_need_a_keyed_stream(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match=r"takes a ProcessFunction, not the KeyedProcessFunction 'Keyed'.*key_by"):
        env.from_collection([1]).process(Keyed())  # type: ignore[arg-type]


def test_a_keyed_stream_takes_keyed_process_functions(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match=r"takes a KeyedProcessFunction, not the ProcessFunction 'Plain'.*not keyed"):
        env.from_collection([1]).key_by(lambda n: n).process(Plain())  # type: ignore[arg-type]


def test_a_class_in_place_of_an_instance_is_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match=r"write Increment\(\)"):
        env.from_collection([1]).map(Increment)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"write Plain\(\)"):
        env.from_collection([1]).process(Plain)  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [str, int, len, str.upper, Increment(), lambda n: n, max])
def test_plain_callables_classes_and_builtins_are_functions(env: StreamExecutionEnvironment, function: Any) -> None:
    assert env.from_collection([1]).map(function).get_name() == "Map"


@pytest.mark.parametrize("method", ["map", "flat_map", "filter", "key_by", "add_sink"])
def test_what_cannot_be_called_is_refused(env: StreamExecutionEnvironment, method: str) -> None:
    with pytest.raises(GraphError, match=rf"{method}\(\).*or a callable, not 17"):
        getattr(env.from_collection([1]), method)(17)


@pytest.mark.parametrize("method", ["map", "flat_map", "filter", "key_by", "add_sink"])
def test_a_lambda_of_the_wrong_arity_is_refused(env: StreamExecutionEnvironment, method: str) -> None:
    with pytest.raises(GraphError, match=r"called with 1 argument, but its signature is \(a, b\)"):
        getattr(env.from_collection([1]), method)(lambda a, b: a)


def test_optional_arguments_do_not_count(env: StreamExecutionEnvironment) -> None:
    assert env.from_collection([1]).map(cast(Any, lambda n, step=1: n + step)).get_name() == "Map"


def test_a_method_of_the_wrong_arity_is_refused(env: StreamExecutionEnvironment) -> None:
    class NoContext(ProcessFunction):
        def process_element(self, value: Any) -> Any:  # type: ignore[override]
            yield value

    with pytest.raises(GraphError, match=r"NoContext.process_element is called with 2 arguments"):
        env.from_collection([1]).process(NoContext())


def test_a_generator_where_one_value_is_expected_is_refused(env: StreamExecutionEnvironment) -> None:
    def twice(value: int) -> Any:
        yield value
        yield value

    with pytest.raises(GraphError, match=r"uses `yield`.*flat_map"):
        env.from_collection([1]).map(twice)
    assert env.from_collection([1]).flat_map(twice).get_name() == "FlatMap"


def test_a_coroutine_is_refused(env: StreamExecutionEnvironment) -> None:
    async def fetch(value: int) -> int:
        return value

    with pytest.raises(GraphError, match="is `async`"):
        env.from_collection([1]).map(fetch)


def test_reduce_takes_two_arguments(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match="called with 2 arguments"):
        env.from_collection([1]).key_by(lambda n: n).reduce(lambda a: a)  # type: ignore[arg-type, misc]


def test_partition_custom_checks_both_functions(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1])
    with pytest.raises(GraphError, match="called with 2 arguments, but its signature is"):
        stream.partition_custom(lambda key: 0, lambda n: n)  # type: ignore[arg-type, misc]
    with pytest.raises(GraphError, match="called with 1 argument, but its signature is"):
        stream.partition_custom(lambda key, n: 0, lambda: 0)  # type: ignore[arg-type, misc]
    with pytest.raises(GraphError, match="takes a Partitioner, not the KeySelector"):
        stream.partition_custom(Identity(), Identity())  # type: ignore[arg-type]
    assert stream.partition_custom(First(), Identity()).map(str).get_name() == "Map"


class Identity(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value


class First(Partitioner):
    def partition(self, key: Any, num_partitions: int) -> int:
        return 0


def test_connected_streams_take_co_functions(env: StreamExecutionEnvironment) -> None:
    connected = env.from_collection([1]).connect(env.from_collection([2]))
    with pytest.raises(GraphError, match="takes a CoMapFunction, not the MapFunction"):
        connected.map(Increment())  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="takes a CoMapFunction, not '<lambda>'"):
        connected.map(lambda n: n)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="not both keyed"):
        connected.process(KeyedBoth())
    assert connected.process(Both()).get_name() == "Co-Process"


def test_keyed_connected_streams_take_both_kinds_as_pyflink_does(env: StreamExecutionEnvironment) -> None:
    connected = env.from_collection([1]).connect(env.from_collection([2])).key_by(lambda n: n, lambda n: n)
    assert connected.process(KeyedBoth()).get_name() == "Keyed Co-Process"
    assert connected.process(Both()).get_name() == "Keyed Co-Process"


def test_one_keyed_side_is_not_enough_for_keyed_functions(env: StreamExecutionEnvironment) -> None:
    half_keyed = env.from_collection([1]).key_by(lambda n: n).connect(env.from_collection([2]))
    with pytest.raises(GraphError, match="not both keyed"):
        half_keyed.process(KeyedBoth())


def test_broadcast_functions_follow_the_other_side(env: StreamExecutionEnvironment) -> None:
    rules = env.from_collection([("a", 1)]).broadcast(RULES)
    plain, keyed = env.from_collection(["a"]), env.from_collection(["a"]).key_by(len)
    with pytest.raises(GraphError, match="not keyed, takes a BroadcastProcessFunction"):
        plain.connect(rules).process(KeyedRules())
    with pytest.raises(GraphError, match="a keyed stream, takes a KeyedBroadcastProcessFunction"):
        keyed.connect(rules).process(Rules())
    assert plain.connect(rules).process(Rules()).get_name() == "Co-Process-Broadcast"
    assert keyed.connect(rules).process(KeyedRules()).get_name() == "Co-Process-Broadcast-Keyed"


def test_broadcast_descriptors_are_map_descriptors_with_different_names(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match="two state descriptors named 'rules'"):
        env.from_collection([1]).broadcast(RULES, MapStateDescriptor("rules", int, int))
    with pytest.raises(GraphError, match="takes MapStateDescriptors"):
        env.from_collection([1]).broadcast("rules")  # type: ignore[call-overload]


def test_sources_and_sinks_are_checked(env: StreamExecutionEnvironment) -> None:
    class Bare(SourceFunction):
        def run(self) -> None:  # type: ignore[override]
            return None

        def cancel(self) -> None:
            return None

    with pytest.raises(GraphError, match=r"Bare.run is called with 1 argument"):
        env.add_source(Bare())
    with pytest.raises(GraphError, match="takes a SourceFunction, not"):
        env.add_source(lambda ctx: None)  # type: ignore[arg-type]

    class OneArgument(SinkFunction):
        def invoke(self, value: Any) -> None:  # type: ignore[override]
            return None

    with pytest.raises(GraphError, match="invoke is called with 2 arguments"):
        env.from_collection([1]).add_sink(OneArgument())


def test_abstract_methods_must_be_written() -> None:
    class Half(CoMapFunction):
        def map1(self, value: Any) -> Any:
            return value

    with pytest.raises(TypeError, match="map2"):
        Half()  # type: ignore[abstract]


@pytest.mark.parametrize("hint", ["str", 3, Types.STRING, [1]])
def test_a_hint_that_is_no_type_is_refused_by_name(env: StreamExecutionEnvironment, hint: Any) -> None:
    with pytest.raises(TypeMismatchError, match=r"DataStream.map\(\) after 'Collection Source'"):
        env.from_collection([1]).map(lambda n: n, output_type=hint)
    with pytest.raises(TypeMismatchError, match=r"from_collection\(\)"):
        env.from_collection([1], type_info=hint)
