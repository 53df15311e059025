"""Chaining, stages, placement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.checkpoint.manifest import Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.rescale import regrouped_operators
from rekindle.common import Configuration, Types
from rekindle.datastream import CoMapFunction, OutputTag, ProcessFunction, StreamExecutionEnvironment
from rekindle.datastream import find_launcher as launcher
from rekindle.graph.build import build_plan
from rekindle.graph.layout import place
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.graph.restore_targets import restore_targets


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class Split(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


def plan_of(env: StreamExecutionEnvironment) -> JobPlan:
    return build_plan(env._program("job"))


def tasks(env: StreamExecutionEnvironment) -> list[str]:
    return [chain.name for chain in plan_of(env).chains]


# -- chaining ---------------------------------------------------------------------------------------------------------


def test_forward_neighbours_are_one_task(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).map(str).filter(bool).print()
    assert tasks(env) == ["Source: Sequence Source -> Map -> Filter -> Sink: Print to Std. Out"]


@pytest.mark.parametrize("method", ["rebalance", "rescale", "shuffle", "broadcast", "global_"])
def test_every_other_partitioning_separates(env: StreamExecutionEnvironment, method: str) -> None:
    getattr(env.from_sequence(1, 9), method)().map(str)
    assert tasks(env) == ["Source: Sequence Source", "Map"]


def test_an_explicit_forward_chains(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).forward().map(str)
    assert tasks(env) == ["Source: Sequence Source -> Map"]


def test_key_by_separates(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).key_by(str).reduce(max).map(str)
    assert tasks(env) == ["Source: Sequence Source", "Reduce -> Map"]


def test_different_parallelism_separates(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).map(str).set_parallelism(1)
    assert tasks(env) == ["Source: Sequence Source", "Map"]


def test_two_inputs_separate(env: StreamExecutionEnvironment) -> None:
    first, second = env.from_sequence(1, 2), env.from_sequence(3, 4)
    first.union(second).map(str)
    first.connect(second).map(Both())
    assert tasks(env) == ["Source: Sequence Source", "Source: Sequence Source", "Map", "Co-Map"]


def test_a_task_may_branch(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 9).process(Split())
    stream.map(str).print()
    stream.get_side_output(OutputTag("side")).filter(bool)
    assert tasks(env) == [
        "Source: Sequence Source -> PROCESS -> (Map -> Sink: Print to Std. Out, Filter)",
    ]


def test_slot_sharing_groups_separate_and_are_inherited(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).map(str).slot_sharing_group("other").filter(bool)
    assert tasks(env) == ["Source: Sequence Source", "Map -> Filter"]
    assert [node.slot_sharing_group for node in plan_of(env).nodes] == ["default", "other", "other"]


def test_start_new_chain_and_disable_chaining(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).map(str).start_new_chain().filter(bool).disable_chaining().map(repr)
    assert tasks(env) == ["Source: Sequence Source", "Map", "Filter", "Map"]


def test_chaining_can_be_switched_off(env: StreamExecutionEnvironment) -> None:
    env.disable_operator_chaining().from_sequence(1, 9).map(str).print()
    assert len(tasks(env)) == 3


def test_different_key_groups_separate_only_if_asked_to(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).map(str).set_max_parallelism(4)
    assert len(tasks(env)) == 1
    key = "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
    env.configure(Configuration.from_dict({key: "false"}))
    assert len(tasks(env)) == 2


def test_a_dataframe_is_a_task_of_its_own_at_stage_zero(
    env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "load_launcher", lambda: None)
    env.from_dataframe(object(), type_info=Types.ROW([Types.LONG()])).map(str)
    plan = plan_of(env)
    assert [(chain.name, chain.stage) for chain in plan.chains] == [
        ("Source: DataFrame", 0),
        ("Timestamps/Watermarks -> Map", 1),
    ]
    assert plan.nodes[0].kind is OperatorKind.SOURCE_DATAFRAME


def test_a_restarted_dataframe_source_is_not_taken_for_a_rescaled_one(
    env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver keeps its state alone: the ends of partitions that were read before the restore count on."""
    monkeypatch.setattr(launcher, "load_launcher", lambda: None)
    env.from_dataframe(object(), type_info=Types.ROW([Types.LONG()])).map(str)
    targets = {target.uid: target for target in restore_targets(plan_of(env))}
    source = plan_of(env).nodes[0]
    saved = OperatorState(source.uid, source.name, 1, source.max_parallelism, [SubtaskState(0, source=b"unread")])
    manifest = Manifest(ManifestKind.CHECKPOINT, 1, "job", "name", "timeline", 1, 0, operators=[saved])
    assert source.parallelism == 2
    assert regrouped_operators(manifest, targets) == frozenset()


def test_a_task_has_its_heads_parallelism_and_key_groups(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).key_by(str).reduce(max).set_max_parallelism(16).map(str)
    chain = plan_of(env).chains[1]
    assert (chain.head, chain.nodes, chain.parallelism, chain.max_parallelism) == (1, (1, 2), 2, 16)


# -- stages -----------------------------------------------------------------------------------------------------------


def test_a_stage_is_the_longest_way_from_the_sources(env: StreamExecutionEnvironment) -> None:
    near, far = env.from_sequence(1, 9), env.from_sequence(1, 9).rebalance().map(str).rebalance().map(str)
    near.connect(far).map(Both()).name("join").rebalance().print()
    plan = plan_of(env)
    assert {chain.name: chain.stage for chain in plan.chains} == {
        "Source: Sequence Source": 0,
        "Map": 2,
        "join": 3,
        "Sink: Print to Std. Out": 4,
    }
    assert plan.stages == 5


def test_branches_of_one_depth_share_a_stage(env: StreamExecutionEnvironment) -> None:
    source = env.from_sequence(1, 9)
    for _ in range(10):
        source.key_by(str).reduce(max).print()
    assert plan_of(env).stages == 2


# -- placement --------------------------------------------------------------------------------------------------------


def test_narrow_tasks_spread() -> None:
    slots, table = place([1, 4, 1, 1, 2, 1])
    assert slots == 4
    assert [table[chain, 0] for chain in (0, 2, 3)] == [0, 1, 2]
    assert [table[4, subtask] for subtask in (0, 1)] == [3, 0]
    assert table[5, 0] == 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_every_subtask_has_a_slot_and_subtasks_of_a_task_differ(parallelisms: list[int]) -> None:
    slots, table = place(parallelisms)
    assert slots == max(parallelisms)
    for chain, parallelism in enumerate(parallelisms):
        hosts = [table[chain, subtask] for subtask in range(parallelism)]
        assert len(set(hosts)) == parallelism
        assert set(hosts) <= set(range(slots))
        if parallelism == slots:
            assert hosts == list(range(slots))


@given(st.integers(2, 8), st.integers(1, 30))
def test_single_tasks_are_spread_evenly(slots: int, singles: int) -> None:
    _, table = place([slots, *[1] * singles])
    load = [sum(1 for chain in range(1, singles + 1) if table[chain, 0] == slot) for slot in range(slots)]
    assert max(load) - min(load) <= 1


def test_the_plan_has_the_table(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).rebalance().map(str).rebalance().print().set_parallelism(1)
    plan = plan_of(env)
    assert (plan.slots, plan.placement) == (2, {(0, 0): 0, (1, 0): 0, (1, 1): 1, (2, 0): 1})
