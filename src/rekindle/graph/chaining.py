"""Chaining: which operators run as one task, by Flink's rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rekindle.graph.nodes import ChainingStrategy, OperatorKind, OperatorNode, Partitioning, StreamEdge


def is_chainable(upstream: OperatorNode, downstream: OperatorNode, edge: StreamEdge, inputs_of_downstream: int) -> bool:
    """Whether an edge can be a call in a task: forward, sole input, same parallelism and group, chaining allowed."""
    return (
        inputs_of_downstream == 1
        and edge.partitioning is Partitioning.FORWARD
        and upstream.parallelism == downstream.parallelism
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.chaining is not ChainingStrategy.NEVER
        and downstream.chaining is ChainingStrategy.ALWAYS
        # A DataFrame's rows come from Spark's own tasks: there is no task of ours to chain to.
        and upstream.kind is not OperatorKind.SOURCE_DATAFRAME
    )


def chain_operators(
    nodes: Sequence[OperatorNode],
    edges: Sequence[StreamEdge],
    enabled: bool = True,
    across_max_parallelism: bool = True,
) -> list[tuple[int, ...]]:
    """The node ids of each chain, its head first; chains in the order of their heads."""
    inputs = Counter(edge.target for edge in edges)
    head_of = {node.id: node.id for node in nodes}
    for edge in sorted(edges, key=lambda edge: edge.target):
        upstream, downstream = nodes[edge.source], nodes[edge.target]
        same_groups = across_max_parallelism or upstream.max_parallelism == downstream.max_parallelism
        if enabled and same_groups and is_chainable(upstream, downstream, edge, inputs[edge.target]):
            head_of[edge.target] = head_of[edge.source]
    chains: dict[int, list[int]] = {}
    for node in nodes:
        chains.setdefault(head_of[node.id], []).append(node.id)
    return [tuple(members) for members in chains.values()]


def chain_name(members: Sequence[int], nodes: Sequence[OperatorNode], edges: Sequence[StreamEdge]) -> str:
    """The name of a chain in Flink's form: `Source: a -> Map -> (Filter, Sink: b)`."""
    inside = set(members)
    targets: dict[int, list[int]] = {}
    for edge in edges:
        if edge.source in inside and edge.target in inside:
            targets.setdefault(edge.source, []).append(edge.target)
    texts: dict[int, str] = {}
    for node_id in reversed(members):  # from the ends, without recursion, so that chains may be long
        name, nested = nodes[node_id].name, [texts.pop(target) for target in targets.get(node_id, ())]
        rest = nested[0] if len(nested) == 1 else f"({', '.join(nested)})"
        texts[node_id] = f"{name} -> {rest}" if nested else name
    return texts[members[0]]
