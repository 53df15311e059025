"""Sinks that commit their output once a checkpoint is complete (I18), and sources that wait for their commits. Pure.

A source that commits its position outside, as Kafka's does, must not be ahead of its job's output: its notification of
a complete checkpoint waits until every committing sink has committed. A sink in the source's own chain is notified
before it anyway.
"""

from __future__ import annotations

from rekindle.datastream.functions import TwoPhaseCommitSinkFunction
from rekindle.graph.nodes import JobPlan, OperatorKind, OperatorNode


def commits_output(node: OperatorNode) -> bool:
    """Whether an operator is a sink that commits with the checkpoints."""
    has_committer = node.kind is OperatorKind.SINK and callable(getattr(node.function, "create_committer", None))
    return has_committer or isinstance(node.function, TwoPhaseCommitSinkFunction)


def awaited_commits(plan: JobPlan) -> frozenset[tuple[int, int]]:
    """The subtasks, as (chain, subtask), whose commits the sources wait for; none if every sink is chained to one."""
    committing = [chain for chain in plan.chains if any(commits_output(plan.nodes[node]) for node in chain.nodes)]
    if all(plan.nodes[chain.head].kind.is_source for chain in committing):
        return frozenset()
    return frozenset((chain.id, subtask) for chain in committing for subtask in range(chain.parallelism))
