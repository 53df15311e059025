"""The plan in the JSON shape of Flink's `getExecutionPlan`, which its plan visualizer reads."""

from __future__ import annotations

import json
from typing import Any

from rekindle.graph.nodes import JobPlan, OperatorNode


def plan_json(plan: JobPlan) -> str:
    """The plan as Flink's JSON: nodes with their predecessors and ship strategies."""
    return json.dumps({"nodes": [_node(plan, node) for node in plan.nodes]}, indent=2)


def _node(plan: JobPlan, node: OperatorNode) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": _pact(node),
        "contents": node.description,
        "parallelism": node.parallelism,
    }
    predecessors = [
        {"id": edge.source, "ship_strategy": edge.partitioning.value, "side": "second"}
        for edge in plan.edges
        if edge.target == node.id
    ]
    return described | ({"predecessors": predecessors} if predecessors else {})


def _pact(node: OperatorNode) -> str:
    if node.kind.is_source:
        return "Data Source"
    return "Data Sink" if node.kind.is_sink else "Operator"
