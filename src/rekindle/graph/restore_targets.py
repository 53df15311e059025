"""The operators of a plan as targets for the state of a checkpoint."""

from __future__ import annotations

from typing import Final

from rekindle.checkpoint.rescale import OperatorTarget
from rekindle.datastream.vocabulary import Partitioning
from rekindle.graph.nodes import JobPlan, OperatorKind, OperatorNode

#: Over these edges a subtask sends to some subtasks only, over the others to all.
_TO_SOME: Final = frozenset({Partitioning.FORWARD, Partitioning.RESCALE})


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
            layout=node.details.state_layout(),
            sees_all_splits=_assigns_splits_itself(node),
            senders_to_some=_senders_to_some(plan, node),
        )
        for node in plan.nodes
    ]
