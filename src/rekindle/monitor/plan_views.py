"""The parts of a job's view that never change: tasks and exchanges of its plan, and its settings."""

from __future__ import annotations

import os

from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.graph.nodes import Chain, JobPlan, OperatorNode
from rekindle.graph.uid import uid_hash
from rekindle.monitor.job_view import CheckpointConfigView, EdgeView, OperatorView, SubtaskView, VertexView
from rekindle.places import is_url


def vertex_id(plan: JobPlan, chain: Chain) -> str:
    """The id of a task: that of its first operator, which stays the same from one version of a program to the next."""
    return plan.nodes[chain.head].uid


def vertices_of(plan: JobPlan) -> list[VertexView]:
    """The tasks of a plan, in topological order."""
    return [_vertex(plan, chain) for chain in plan.chains]


def _vertex(plan: JobPlan, chain: Chain) -> VertexView:
    return VertexView(
        id=vertex_id(plan, chain),
        name=chain.name,
        parallelism=chain.parallelism,
        max_parallelism=chain.max_parallelism,
        stage=chain.stage,
        slot_sharing_group=uid_hash("slot sharing group", plan.nodes[chain.head].slot_sharing_group),
        operators=[_operator(plan.nodes[node]) for node in chain.nodes],
        subtasks=[
            SubtaskView(index=subtask, slot=plan.placement.get((chain.id, subtask), 0))
            for subtask in range(chain.parallelism)
        ],
    )


def _operator(node: OperatorNode) -> OperatorView:
    return OperatorView(uid=node.uid, name=node.name, description=node.description or node.name, user_uid=node.user_uid)


def edges_of(plan: JobPlan) -> dict[int, EdgeView]:
    """The exchanges between tasks, by the edge's id in the plan."""
    return {
        edge.id: EdgeView(
            source=vertex_id(plan, plan.chain_of(edge.source)),
            target=vertex_id(plan, plan.chain_of(edge.target)),
            ship_strategy=edge.partitioning.value,
        )
        for edge in plan.edges
        if not plan.chained(edge)
    }


def checkpoint_config_of(plan: JobPlan) -> CheckpointConfigView:
    """The settings of a plan's checkpoints."""
    checkpoints = plan.settings.checkpoints
    retention = checkpoints.retention
    rocksdb, stored = plan.settings.state_backend.is_rocksdb, checkpoints.directory is not None
    return CheckpointConfigView(
        interval_ms=checkpoints.interval_ms,
        timeout_ms=checkpoints.timeout_ms,
        min_pause_ms=checkpoints.min_pause_ms,
        max_concurrent=checkpoints.max_concurrent,
        tolerable_failures=checkpoints.tolerable_failures,
        externalized=retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
        delete_on_cancellation=retention is not ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION,
        state_backend="EmbeddedRocksDBStateBackend" if rocksdb else "HashMapStateBackend",
        storage="FileSystemCheckpointStorage" if stored else "JobManagerCheckpointStorage",
        unaligned=checkpoints.unaligned,
        aligned_timeout_ms=checkpoints.aligned_timeout_ms,
        directory=_from_anywhere(checkpoints.directory),
        savepoint_directory=_from_anywhere(checkpoints.savepoint_directory),
    )


def _from_anywhere(directory: str | None) -> str | None:
    """A directory as those see it who work in another folder than the driver."""
    return directory if directory is None or is_url(directory) else os.path.abspath(directory)
