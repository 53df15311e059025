"""The layout of the state that operators keep on their own, as a text that is stored in each checkpoint.

An operator cannot restore rows of another layout, even under the same uid.
"""

from __future__ import annotations

from typing import Final

from rekindle.checkpoint.rescale import OperatorTarget
from rekindle.datastream.vocabulary import Partitioning
from rekindle.datastream.windowing.operation import LAYOUT_OPTION
from rekindle.graph.nodes import JobPlan, OperatorKind, OperatorNode

_OF_KIND: Final = {
    OperatorKind.REDUCE: "a rolling aggregation",
    OperatorKind.INTERVAL_JOIN_PROCESS: "an interval join",
    OperatorKind.ASYNC_WAIT: "async I/O",
}

#: Over these edges a subtask sends to some subtasks only, over the others to all.
_TO_SOME: Final = frozenset({Partitioning.FORWARD, Partitioning.RESCALE})


def state_layout(node: OperatorNode) -> str:
    """The layout of an operator's own state; empty where only the user's function keeps state."""
    return str(node.options.get(LAYOUT_OPTION) or _OF_KIND.get(node.kind, ""))


def _assigns_splits_itself(node: OperatorNode) -> bool:
    """Whether the source chooses each subtask's splits out of all (I8)."""
    if node.kind is OperatorKind.SOURCE_READER:
        return bool(node.function.has_split_owner)
    return node.kind is OperatorKind.SOURCE_FUNCTION


def _parallelism_of_state(node: OperatorNode) -> int:
    """The number of subtasks that keep the operator's state; the driver alone keeps that of a DataFrame source."""
    return 1 if node.kind is OperatorKind.SOURCE_DATAFRAME else node.parallelism


def _senders_to_some(plan: JobPlan, node: OperatorNode) -> tuple[str, ...]:
    before = [edge.source for edge in plan.edges if edge.target == node.id and edge.partitioning in _TO_SOME]
    return tuple(plan.nodes[sender].uid for sender in before)


def restore_targets(plan: JobPlan) -> list[OperatorTarget]:
    """The plan's operators as targets for the state of a checkpoint."""
    return [
        OperatorTarget(
            uid=node.uid,
            name=node.name,
            parallelism=_parallelism_of_state(node),
            max_parallelism=node.max_parallelism,
            layout=state_layout(node),
            sees_all_splits=_assigns_splits_itself(node),
            senders_to_some=_senders_to_some(plan, node),
        )
        for node in plan.nodes
    ]
