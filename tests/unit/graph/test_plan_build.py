"""Building the plan of a program: open choices are decided, impossible jobs are refused."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import Configuration, Duration, Types, WatermarkStrategy
from rekindle.datastream import (
    BroadcastProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    ParallelSourceFunction,
    ProcessFunction,
    RuntimeExecutionMode,
    SourceFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.connectors.base import Boundedness
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.connectors.number_seq import NumberSequenceSource
from rekindle.datastream.operator_details import BroadcastDetails
from rekindle.datastream.state import MapStateDescriptor
from rekindle.errors import GraphError
from rekindle.graph.build import build_plan
from rekindle.graph.layout import default_max_parallelism
from rekindle.graph.nodes import JobPlan, OperatorKind, Partitioning
from rekindle.graph.settings import ExchangeSettings


class Ticks(SourceFunction):
    def run(self, ctx: Any) -> None:
        return None

    def cancel(self) -> None:
        return None


class ParallelTicks(Ticks, ParallelSourceFunction):
    pass


class BoundedTicks(Ticks):
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED


class Split(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Join(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


class Rules(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return None


def plan_of(env: StreamExecutionEnvironment, **options: Any) -> JobPlan:
    return build_plan(env._program("job"), **options)


def edges_of(plan: JobPlan) -> list[tuple[str, Partitioning, str]]:
    return [(plan.nodes[e.source].name, e.partitioning, plan.nodes[e.target].name) for e in plan.edges]


# -- parallelism ------------------------------------------------------------------------------------------------------


def test_sources_have_the_parallelism_of_their_kind(env: StreamExecutionEnvironment) -> None:
    env.add_source(Ticks(), "one").union(
        env.add_source(ParallelTicks(), "many"), env.from_collection([1]), env.from_sequence(1, 9)
    ).print()
    assert {node.name: node.parallelism for node in plan_of(env).nodes} == {
        "Source: one": 1,
        "Source: many": 2,
        "Source: Collection Source": 1,
        "Source: Sequence Source": 2,
        "Sink: Print to Std. Out": 2,
    }


def test_the_default_parallelism_is_the_environments_then_the_clusters_then_the_machines() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_default_local_parallelism(3)
    env.from_sequence(1, 9).print()
    assert plan_of(env).slots == 3
    assert plan_of(env, default_parallelism=5).slots == 5
    env.set_parallelism(4)
    assert plan_of(env, default_parallelism=5).slots == 4


def test_key_groups_by_operator_then_environment_then_formula(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).map(str).set_max_parallelism(7)
    assert [node.max_parallelism for node in plan_of(env).nodes] == [128, 7]
    env.set_max_parallelism(9)
    assert [node.max_parallelism for node in plan_of(env).nodes] == [9, 7]


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [(1, 128), (85, 128), (86, 256), (171, 256), (172, 512), (20_000, 32_768), (32_768, 32_768)],
)
def test_flinks_formula_for_key_groups(parallelism: int, expected: int) -> None:
    assert default_max_parallelism(parallelism) == expected


def test_a_default_parallelism_above_the_maximum_is_refused(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(8).from_sequence(1, 9).map(str).name("narrow").set_max_parallelism(4)
    with pytest.raises(GraphError, match="'narrow' has parallelism 8, above its maximum of 4"):
        plan_of(env)


# -- edges ------------------------------------------------------------------------------------------------------------


def test_default_partitioning_is_forward_between_equals_else_rebalance(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).map(str).name("a").map(str).name("b").map(str).name("c").set_parallelism(3)
    assert [edge[1] for edge in edges_of(plan_of(env))] == [
        Partitioning.REBALANCE,
        Partitioning.FORWARD,
        Partitioning.REBALANCE,
    ]


def test_forward_between_different_parallelisms_is_refused(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).forward().map(str).name("wide")
    with pytest.raises(GraphError, match=r"forward\(\) from 'Source: Collection Source' to 'wide'.*not 1 and 2"):
        plan_of(env)


def test_keyed_operators_know_their_selectors(env: StreamExecutionEnvironment) -> None:
    def key(value: Any) -> Any:
        return value

    env.from_sequence(1, 9).key_by(key, key_type=int).map(str)
    plan = plan_of(env)
    assert (plan.nodes[1].key_selectors, plan.nodes[1].key_type, plan.nodes[1].is_keyed) == ((key,), Types.LONG(), True)
    assert (plan.edges[0].partitioning, plan.edges[0].key_selector) == (Partitioning.KEY, key)
    assert not plan.nodes[0].is_keyed


def test_timestamps_on_a_keyed_stream_are_not_keyed(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    env.from_sequence(1, 9).key_by(str).assign_timestamps_and_watermarks(strategy)
    assert not plan_of(env).nodes[1].is_keyed


def test_two_inputs_have_their_index_and_selectors(env: StreamExecutionEnvironment) -> None:
    left, right = env.from_sequence(1, 9), env.from_sequence(10, 19)
    left.union(env.from_sequence(20, 29)).connect(right).key_by(str, repr).process(Join())
    plan = plan_of(env)
    assert [(edge.source, edge.input_index, edge.key_selector) for edge in plan.edges] == [
        (0, 0, str),
        (2, 0, str),
        (1, 1, repr),
    ]
    assert plan.nodes[3].key_selectors == (str, repr)
    assert plan.nodes[3].kind is OperatorKind.KEYED_CO_PROCESS


def test_a_broadcast_side_is_the_second_input(env: StreamExecutionEnvironment) -> None:
    rules = MapStateDescriptor("rules", str, int)
    env.from_sequence(1, 9).connect(env.from_collection([("a", 1)]).broadcast(rules)).process(Rules())
    plan = plan_of(env)
    assert [(edge.input_index, edge.partitioning) for edge in plan.edges] == [
        (0, Partitioning.FORWARD),
        (1, Partitioning.BROADCAST),
    ]
    assert plan.nodes[2].details == BroadcastDetails((rules,))


def test_side_outputs_are_edges_with_their_tag_and_type(env: StreamExecutionEnvironment) -> None:
    odd, even = OutputTag("odd", int), OutputTag("even")
    split = env.from_sequence(1, 9).process(Split(), output_type=str)
    split.get_side_output(odd).print()
    split.get_side_output(even).rebalance().print()
    split.print()
    plan = plan_of(env)
    assert [(edge.tag, edge.type_info) for edge in plan.edges[1:]] == [
        ("odd", Types.LONG()),
        ("even", None),
        (None, Types.STRING()),
    ]
    assert plan.nodes[1].side_output_types == {"odd": Types.LONG(), "even": None}


def test_a_custom_partitioner_is_on_the_edge(env: StreamExecutionEnvironment) -> None:
    def first(key: Any, count: int) -> int:
        return 0

    env.from_sequence(1, 9).partition_custom(first, str).map(str)
    edge = plan_of(env).edges[0]
    assert (edge.partitioning, edge.partitioner, edge.key_selector) == (Partitioning.CUSTOM, first, str)


# -- operators of the program -----------------------------------------------------------------------------------------


def test_a_program_without_operators_is_refused(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9)
    with pytest.raises(GraphError, match="no operators"):
        plan_of(env)


def test_a_source_that_nobody_reads_is_left_out(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1])
    env.from_sequence(1, 9).print()
    assert [node.name for node in plan_of(env).nodes] == ["Source: Sequence Source", "Sink: Print to Std. Out"]


def test_streams_of_an_earlier_program_bring_their_sources_along(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 9).map(str)
    stream.print()
    env.close()
    stream.filter(bool)
    assert [node.name for node in plan_of(env).nodes] == ["Source: Sequence Source", "Map", "Filter"]


def test_a_sources_watermark_strategy_is_an_operator_behind_it(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    source = env.from_source(NumberSequenceSource(1, 9), strategy, "numbers", int).set_parallelism(3).uid("numbers")
    source.print()
    plan = plan_of(env)
    assert [(node.kind, node.parallelism) for node in plan.nodes] == [
        (OperatorKind.SOURCE_READER, 3),
        (OperatorKind.TIMESTAMPS, 3),
        (OperatorKind.SINK_FUNCTION, 2),
    ]
    assert plan.nodes[1].function is strategy
    assert plan.nodes[1].output_type == Types.LONG()
    assert edges_of(plan)[0] == ("Source: numbers", Partitioning.FORWARD, "Timestamps/Watermarks")
    assert plan.chained(plan.edges[0])


def test_no_watermarks_need_no_operator(env: StreamExecutionEnvironment) -> None:
    env.from_source(NumberSequenceSource(1, 9), WatermarkStrategy.no_watermarks(), "numbers").print()
    assert len(plan_of(env).nodes) == 2
    assigned = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, timestamp: value)
    env.from_source(NumberSequenceSource(1, 9), assigned, "stamped").print()
    assert len(plan_of(env).nodes) == 5


def test_collecting_needs_no_exchange_of_its_own(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1], int)
    plan = build_plan(env._program("job", stream._collect()))
    assert [(node.kind, node.parallelism) for node in plan.nodes][-1] == (OperatorKind.COLLECT, 1)
    assert (len(plan.chains), plan.nodes[-1].output_type) == (1, Types.LONG())


def test_node_ids_are_positions_and_inputs_come_first(env: StreamExecutionEnvironment) -> None:
    first, second = env.from_sequence(1, 2), env.from_sequence(3, 4)
    second.union(first).map(str).print()
    plan = plan_of(env)
    assert [node.id for node in plan.nodes] == list(range(len(plan.nodes)))
    assert [edge.id for edge in plan.edges] == list(range(len(plan.edges)))
    assert all(edge.source < edge.target for edge in plan.edges)


# -- runtime mode -----------------------------------------------------------------------------------------------------


def test_batch_with_an_unbounded_source_is_refused_by_name(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.add_source(Ticks(), "ticks").print()
    with pytest.raises(GraphError, match="BATCH needs bounded sources, but 'ticks'"):
        plan_of(env)


def test_automatic_is_batch_exactly_when_all_sources_are_bounded(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    stream = env.from_sequence(1, 9).union(env.add_source(BoundedTicks(), type_info=int))
    stream.print()
    assert plan_of(env).batch
    endless = env.from_source(DataGeneratorSource(lambda n: n), WatermarkStrategy.no_watermarks(), "endless")
    stream.union(endless).print()
    assert not plan_of(env).batch


def test_streaming_is_the_default(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).print()
    assert not plan_of(env).batch


# -- settings ---------------------------------------------------------------------------------------------------------


def test_settings_come_from_the_configuration(env: StreamExecutionEnvironment) -> None:
    env.configure(
        Configuration.from_dict(
            {
                "rekindle.epoch.chunk-records": "99",
                "rekindle.slot.memory-buffer": "1mb",
                "state.pickle": "allow",
                "execution.checkpointing.interval": "3 s",
            }
        )
    )
    env.get_config().set_global_job_parameters({"region": "eu"}).enable_object_reuse()
    env.set_buffer_timeout(7)
    env.from_sequence(1, 9).print()
    settings = plan_of(env).settings
    assert settings.exchange == ExchangeSettings(chunk_records=99, memory_buffer_bytes=1 << 20)
    assert (settings.epochs.min_interval_ms, settings.checkpoints.interval_ms) == (7, 3000)
    expected = {
        "global_job_parameters": {"region": "eu"},
        "pickle_allowed": True,
        "object_reuse": True,
    }
    assert {key: getattr(settings, key) for key in expected} == expected


def test_batch_has_no_checkpoints(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH).enable_checkpointing(1000).from_sequence(1, 9).print()
    assert plan_of(env).settings.checkpoints.interval_ms == -1


def test_pickled_parts_are_refused_by_name_when_asked_to(env: StreamExecutionEnvironment) -> None:
    env.configure(Configuration.from_dict({"state.pickle": "refuse"}))
    env.from_sequence(1, 9).map(str).name("text").key_by(len).reduce(max)
    with pytest.raises(GraphError) as refused:
        plan_of(env)
    assert "records from 'text' to 'Reduce' (no type was declared); state of 'Reduce'" in str(refused.value)


def test_what_stays_inside_a_task_may_be_undeclared(env: StreamExecutionEnvironment) -> None:
    env.configure(Configuration.from_dict({"state.pickle": "refuse"}))
    env.from_sequence(1, 9).map(str).print()
    assert len(plan_of(env).chains) == 1
