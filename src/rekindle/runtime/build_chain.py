"""Builds one subtask of a chain from the plan: its operators with their backends, and both ends of its edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rekindle.clock import Clock
from rekindle.datastream.operator_details import DataFrameDetails
from rekindle.graph.nodes import Chain, JobPlan, OperatorKind, Partitioning, StreamEdge
from rekindle.key_groups import key_group_range
from rekindle.runtime.context import Accumulators, JobIdentity, OperatorContext
from rekindle.runtime.exchange.outbox import ChunkOutbox, Outbox
from rekindle.runtime.exchange.writers import (
    BroadcastWriter,
    CustomWriter,
    EdgeTarget,
    EdgeWriter,
    KeyWriter,
    RoundRobinWriter,
    ShuffleWriter,
    SingleTargetWriter,
    rescale_sources,
    rescale_targets,
)
from rekindle.runtime.key_hash import router_entries
from rekindle.runtime.list_keys import key_codec_for
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.build_operator import Blueprint, build_operator, selector_function
from rekindle.runtime.operators.reader_source import ReaderSourceOperator
from rekindle.runtime.operators.roles import (
    Cancellable,
    Committing,
    EpochListener,
    Positioned,
    PreparesSnapshot,
    SnapshotParticipant,
    Timed,
    TwoInputs,
)
from rekindle.runtime.operators.sources import SourceOperator
from rekindle.runtime.operators.stateless import method_or_callable
from rekindle.runtime.operators.timestamps import TimestampsOperator
from rekindle.runtime.operators.windows.namespaces import windowed_shape
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.keyed_backends import KeyedBackends, KeyedOperatorShape
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.task_metrics import TaskMetricGroup
from rekindle.runtime.timers import InternalTimers
from rekindle.serde import codec_for

#: The part of a slot's memory for state that the keys of a `key_by` may take.
_ROUTER_SHARE: Final = 8


@dataclass(frozen=True)
class SlotServices:
    """The services of a slot that its tasks use."""

    attempt: int
    clock: Clock
    directory: str
    accumulators: Accumulators
    load_function: Callable[[int], Any]
    load_edge_function: Callable[[int, str], Any]  # (edge id, "key_selector" | "partitioner")
    load_selector: Callable[[int, int], Any]  # (node id, input index)
    wake: Callable[[], None]
    backends: KeyedBackends
    job: JobIdentity = field(default_factory=JobIdentity)
    cached_files: Mapping[str, str] = field(default_factory=dict)  # name -> path on this machine
    build: Callable[[Blueprint], Operator] = build_operator


class OperatorRoles:
    """The operators of one chain by role, from head to tail."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self.operators = operators
        head = operators[0]
        self.source = head if isinstance(head, SourceOperator) else None
        self.second_input = head if isinstance(head, TwoInputs) else None
        self.timed = [each for each in operators if isinstance(each, Timed)]
        self.cancellable = [each for each in operators if isinstance(each, Cancellable)]
        self.times = [each.times for each in operators if isinstance(each, TimestampsOperator)]
        read = self.source.times if self.source is not None else None
        self.times_without_reader = [each for each in self.times if each is not read]
        self.epoch_listeners = [each for each in operators if isinstance(each, EpochListener)]
        # Operator uid -> operator.
        self.positioned = {each.node.uid: each for each in operators if isinstance(each, Positioned)}
        self.participants = {each.node.uid: each for each in operators if isinstance(each, SnapshotParticipant)}
        self.preparing = {each.node.uid: each for each in operators if isinstance(each, PreparesSnapshot)}
        self.committing = {each.node.uid: each for each in operators if isinstance(each, Committing)}


@dataclass(frozen=True)
class ChainBuilder:
    """Builds the parts of one subtask of a chain."""

    plan: JobPlan
    chain: Chain
    subtask: int
    services: SlotServices
    outbox: Outbox

    @property
    def task_name(self) -> str:
        """The name of the subtask, for people."""
        return f"{self.chain.name} ({self.subtask + 1}/{self.chain.parallelism})"

    def operators(self) -> dict[int, Operator]:
        """Build the operators of the chain by node, from head to tail."""
        operators = {node_id: self._operator(node_id) for node_id in self.chain.nodes}
        self._share_times(operators)
        return operators

    def _share_times(self, operators: Mapping[int, Operator]) -> None:
        """Let a reader share the event time of the timestamps operator that alone takes its records."""
        leaving = [edge for edge in self.plan.edges if edge.source == self.chain.head]
        following = [edge.target for edge in leaving if edge.tag is None]
        reader, assigner = operators[self.chain.head], operators.get(following[0]) if len(following) == 1 else None
        if isinstance(reader, ReaderSourceOperator) and isinstance(assigner, TimestampsOperator):
            has_side_outputs = len(leaving) > len(following)  # else the plan has them behind the watermarks
            reader.share_times(assigner.times, reader.output if has_side_outputs else assigner.output)

    def _operator(self, node_id: int) -> Operator:
        """Build an operator of the chain, with its state backends and its function."""
        plan, services = self.plan, self.services
        node = plan.nodes[node_id]
        groups = key_group_range(node.max_parallelism, node.parallelism, self.subtask)
        allow_pickle = plan.settings.pickle_allowed
        keyed: KeyedStateBackend | None = None
        timers: InternalTimers | None = None
        if node.is_keyed:
            key_codec = key_codec_for(node.key_type, allow_pickle=allow_pickle)
            if node.kind is OperatorKind.WINDOW:
                shape, options = windowed_shape(node, groups, allow_pickle), KeyedStateOptions(allow_pickle)
            else:
                shape = KeyedOperatorShape(node.max_parallelism, groups, key_codec)
                options = KeyedStateOptions(allow_pickle, defer_reads=True)
            keyed = services.backends.create(shape, replace(options, clock=services.clock))
            timers = services.backends.create_timers(node.max_parallelism, groups, key_codec, allow_pickle=allow_pickle)
        context = OperatorContext(
            node=node,
            subtask=self.subtask,
            attempt=services.attempt,
            clock=services.clock,
            accumulators=services.accumulators,
            metrics=TaskMetricGroup(services.clock),
            keyed=keyed,
            timers=timers,
            operator_state=OperatorStateBackend(self.subtask, allow_pickle=allow_pickle),
            batch=plan.batch,
            cached_files=services.cached_files,
            job=services.job,
            directory=services.directory,
            settings=plan.settings,
        )
        selectors = [
            services.load_selector(node_id, index) if selector is not None else None
            for index, selector in enumerate(node.key_selectors)
        ]
        function = services.load_function(node_id)
        return services.build(Blueprint(node, context, function, selectors, self.outbox, services.wake))

    def writer(self, edge: StreamEdge) -> EdgeWriter:
        """Build the writer of an edge that leaves the chain."""
        plan = self.plan
        chain = plan.chain_of(edge.target)
        slots = tuple(plan.placement[chain.id, target] for target in range(chain.parallelism))
        target = EdgeTarget(
            edge=edge.id,
            label=f"{plan.nodes[edge.source].name} -> {plan.nodes[edge.target].name}",
            source=self.subtask,
            sources=self.chain.parallelism,
            target_slots=slots,
            codec=codec_for(edge.type_info),
            chunk_records=plan.settings.exchange.chunk_records,
        )
        return self._writer(edge, target, self.outbox)

    def redistributor(self, edge_id: int, outbox: ChunkOutbox) -> EdgeWriter:
        """Build a writer that redistributes restored in-flight records of an edge to the current subtasks of the chain.

        Each subtask builds the same writer. The outbox gets chunks by target subtask.
        """
        edge = self.plan.edges[edge_id]
        target = EdgeTarget(
            edge=edge.id,
            label=f"{self.plan.nodes[edge.source].name} -> {self.plan.nodes[edge.target].name}",
            source=0,
            sources=1,
            target_slots=tuple(range(self.chain.parallelism)),
            codec=codec_for(edge.type_info),
            chunk_records=self.plan.settings.exchange.chunk_records,
        )
        return self._writer(edge, target, outbox)

    def _writer(self, edge: StreamEdge, target: EdgeTarget, outbox: ChunkOutbox) -> EdgeWriter:
        match edge.partitioning:
            case Partitioning.KEY:
                selector = selector_function(self.services.load_edge_function(edge.id, "key_selector"))
                groups = self.plan.chain_of(edge.target).max_parallelism
                return KeyWriter(target, outbox, selector, groups, self._router_entries())
            case Partitioning.REBALANCE:
                return RoundRobinWriter(target, outbox, range(target.channels), last=target.source)
            case Partitioning.RESCALE:
                share = rescale_targets(target.source, target.sources, target.channels)
                return RoundRobinWriter(target, outbox, share, last=len(share) - 1)
            case Partitioning.SHUFFLE:
                return ShuffleWriter(target, outbox)
            case Partitioning.BROADCAST:
                return BroadcastWriter(target, outbox)
            case Partitioning.GLOBAL:
                return SingleTargetWriter(target, outbox, 0, marks_to_all=True)
            case Partitioning.FORWARD:
                return SingleTargetWriter(target, outbox, self.subtask, marks_to_all=False)
            case Partitioning.CUSTOM:
                selector = selector_function(self.services.load_edge_function(edge.id, "key_selector"))
                partitioner = self.services.load_edge_function(edge.id, "partitioner")
                return CustomWriter(target, outbox, selector, method_or_callable(partitioner, "partition"))

    def _router_entries(self) -> int:
        """The number of keys that a writer remembers: as many as pay, or as fit into a share of its memory."""
        backend = self.plan.settings.state_backend
        return router_entries(backend.managed_bytes // _ROUTER_SHARE if backend.is_rocksdb else None)

    def channels(self, edge: StreamEdge) -> list[tuple[int, int]]:
        """Return the channels over which this subtask receives from an edge: (edge, sending subtask)."""
        source = self.plan.chain_of(edge.source)
        details = self.plan.nodes[edge.source].details
        if isinstance(details, DataFrameDetails):
            return [(edge.id, partition) for partition in range(details.partitions)]
        if edge.partitioning is Partitioning.FORWARD:
            return [(edge.id, self.subtask)]
        if edge.partitioning is Partitioning.RESCALE:
            senders = rescale_sources(self.subtask, source.parallelism, self.chain.parallelism)
            return [(edge.id, sender) for sender in senders]
        return [(edge.id, sender) for sender in range(source.parallelism)]
