"""The plan as data: frozen nodes, edges, chains and stages that the engine, `explain()` and the tests all read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rekindle.common.typeinfo import TypeInformation
from rekindle.common.watermark_strategy import MIN_WATERMARK
from rekindle.datastream.operator_details import PLAIN, OperatorDetails
from rekindle.datastream.vocabulary import ChainingStrategy, OperatorKind, Partitioning
from rekindle.graph.settings import JobSettings

__all__ = [
    "MIN_WATERMARK",
    "Chain",
    "ChainingStrategy",
    "JobPlan",
    "OperatorKind",
    "OperatorNode",
    "Partitioning",
    "StreamEdge",
]

Details = TypeVar("Details", bound=OperatorDetails)
_UNDECLARED = "no type was declared"


@dataclass(frozen=True)
class OperatorNode:
    """One operator. `id` is its place in topological order, `uid` its stable id over program versions."""

    id: int
    uid: str
    user_uid: str | None
    name: str
    kind: OperatorKind
    function: Any
    parallelism: int
    max_parallelism: int
    output_type: TypeInformation | None
    side_output_types: Mapping[str, TypeInformation | None] = field(default_factory=dict)
    key_selectors: tuple[Any, ...] = ()  # one per input (None for an input that is not keyed); empty if none is keyed
    key_type: TypeInformation | None = None
    details: OperatorDetails = PLAIN
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    slot_sharing_group: str = "default"
    description: str = ""
    #: Sources: whether an operator may read the timestamps of the source's records.
    timestamps_are_read: bool = True

    def described_as(self, kind: type[Details]) -> Details:
        """Return the details, which are those of an operator of this kind."""
        assert isinstance(self.details, kind), f"{self.name} is described by {self.details}"
        return self.details

    @property
    def is_keyed(self) -> bool:
        """Whether records reach the operator by key."""
        return any(selector is not None for selector in self.key_selectors)


@dataclass(frozen=True)
class StreamEdge:
    """An edge from one operator's (side) output to an input of another."""

    id: int
    source: int
    target: int
    input_index: int
    partitioning: Partitioning
    type_info: TypeInformation | None
    tag: str | None = None  # side output; None: the main output
    key_selector: Any = None  # for KEY, CUSTOM, and FORWARD of a stream that is keyed already
    partitioner: Any = None  # for CUSTOM: Partitioner or callable(key, num_partitions)


@dataclass(frozen=True)
class Chain:
    """Operators that run as one task: the head first, the others in topological order."""

    id: int
    nodes: tuple[int, ...]
    name: str
    parallelism: int
    max_parallelism: int
    stage: int

    @property
    def head(self) -> int:
        """The operator that takes the chain's input."""
        return self.nodes[0]


@dataclass(frozen=True)
class JobPlan:
    """A job as the engine runs it, as data."""

    job_name: str
    nodes: tuple[OperatorNode, ...]
    edges: tuple[StreamEdge, ...]
    chains: tuple[Chain, ...]
    slots: int
    placement: Mapping[tuple[int, int], int]  # (chain, subtask) -> slot
    settings: JobSettings
    batch: bool = False
    cached_files: Mapping[str, str] = field(default_factory=dict)  # name -> path, as they were registered

    @property
    def stages(self) -> int:
        """The number of Spark stages of an epoch."""
        return 1 + max(chain.stage for chain in self.chains)

    def has_tasks(self, chain: Chain) -> bool:
        """Whether the chain runs as tasks in slots: the rows of a DataFrame come from Spark's own tasks."""
        return self.nodes[chain.head].kind is not OperatorKind.SOURCE_DATAFRAME

    def pickled_parts(self) -> list[str]:
        """A sentence for each stream between tasks, each result and each known state that is pickled (I20)."""
        named = [
            (f"records from {self._output(edge)} to '{self.nodes[edge.target].name}'", edge.type_info)
            for edge in self.edges
            if not self.chained(edge)
        ]
        for node in self.nodes:
            named += node.details.stored_types(node.name, node.output_type)
        reasons: dict[str, str] = {}
        for values, type_info in named:
            reason = _UNDECLARED if type_info is None else type_info.pickle_reason()
            if reason is not None:
                reasons.setdefault(values, reason)
        return [f"{values} ({reason})" for values, reason in reasons.items()]

    def _output(self, edge: StreamEdge) -> str:
        name = f"'{self.nodes[edge.source].name}'"
        return name if edge.tag is None else f"side output '{edge.tag}' of {name}"

    def keyed_operators_in(self, slot: int) -> int:
        """The number of keyed operators, in all their subtasks, that a slot hosts."""
        return sum(
            self.nodes[node].is_keyed
            for chain in self.chains
            for subtask in range(chain.parallelism)
            if self.placement[chain.id, subtask] == slot
            for node in chain.nodes
        )

    @property
    def subtasks(self) -> list[tuple[int, int]]:
        """Every task that runs in a slot, as (chain, subtask)."""
        return [
            (chain.id, subtask)
            for chain in self.chains
            if self.has_tasks(chain)
            for subtask in range(chain.parallelism)
        ]

    def chain_of(self, node_id: int) -> Chain:
        """The chain that an operator belongs to."""
        return next(chain for chain in self.chains if node_id in chain.nodes)

    def upstream(self, node_id: int) -> frozenset[int]:
        """The nodes that an operator gets records from, directly or not, and itself."""
        found, new = set[int](), {node_id}
        while new:
            found |= new
            new = {edge.source for edge in self.edges if edge.target in new} - found
        return frozenset(found)

    def chained(self, edge: StreamEdge) -> bool:
        """Whether the edge is a call inside a task, not an exchange through Spark."""
        return self.chain_of(edge.source).id == self.chain_of(edge.target).id
