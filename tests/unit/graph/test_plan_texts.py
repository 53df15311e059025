"""The plan as text and as Flink's JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rekindle.datastream import OutputTag, ProcessFunction
from rekindle.graph.build import build_plan
from rekindle.graph.explain import explain
from rekindle.graph.nodes import JobPlan
from rekindle.graph.plan_json import plan_json
from tests.support.environments import environment


class Split(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


@pytest.fixture
def plan() -> JobPlan:
    env = environment(2)
    split = (
        env.from_collection([1], int).process(Split()).name("split").uid("split-uid").set_description("odd and even")
    )
    split.get_side_output(OutputTag("odd", int)).key_by(lambda n: n, key_type=int).reduce(max)
    split.print("even")
    return build_plan(env._program("texts"))


def test_json_has_flinks_shape(plan: JobPlan) -> None:
    nodes = json.loads(plan_json(plan))["nodes"]
    assert nodes[0] == {
        "id": 0,
        "type": "Source: Collection Source",
        "pact": "Data Source",
        "contents": "Collection Source",
        "parallelism": 1,
    }
    assert nodes[1] == {
        "id": 1,
        "type": "split",
        "pact": "Operator",
        "contents": "odd and even",
        "parallelism": 2,
        "predecessors": [{"id": 0, "ship_strategy": "REBALANCE", "side": "second"}],
    }
    assert nodes[3]["pact"] == "Data Sink"
    assert nodes[2]["predecessors"] == [{"id": 1, "ship_strategy": "HASH", "side": "second"}]


def test_explain_names_tasks_stages_slots_types_and_what_is_pickled(plan: JobPlan) -> None:
    assert explain(plan).splitlines() == [
        "Job 'texts': STREAMING, 3 tasks in 3 stages, 2 slots",
        "",
        "Stage 0",
        "  Source: Collection Source (parallelism 1, slots 0)",
        "    [0] Source: Collection Source: source_reader -> Long (msgpack)",
        "    => REBALANCE to [1] split",
        "",
        "Stage 1",
        "  split -> Sink: Print to Std. Out (parallelism 2, slots 0 1)",
        "    [1] split: process, uid 'split-uid' -> undeclared (pickled); side output 'odd' Long (msgpack)",
        "    [3] Sink: Print to Std. Out: sink_function",
        "    => HASH of side output 'odd' from [1] to [2] Reduce",
        "",
        "Stage 2",
        "  Reduce (parallelism 2, slots 0 1)",
        "    [2] Reduce: reduce, keyed by Long, 128 key groups -> Long (msgpack)",
        "",
        "Pickled: nothing",
    ]


def test_explain_lists_what_is_pickled_by_name() -> None:
    env = environment(2)
    env.from_collection([1]).map(str).print()
    text = explain(build_plan(env._program("pickles")))
    assert "Pickled:\n  records from 'Source: Collection Source' to 'Map' (no type was declared)" in text
