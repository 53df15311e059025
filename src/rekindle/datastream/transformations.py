"""The API's own form of a program: one mutable `Transformation` per operator.

`name`, `uid`, `set_parallelism` and the like change it. `rekindle.graph.build` turns a finished `Program` into the
frozen plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from rekindle.common.configuration import Configuration
from rekindle.common.execution_config import ExecutionConfig
from rekindle.common.restart_strategy import RestartStrategyConfiguration
from rekindle.common.typeinfo import TypeInformation
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream.cached_files import CachedFile
from rekindle.datastream.checkpoint_config import CheckpointConfig
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.operator_details import OperatorDetails
from rekindle.datastream.state_backend import StateBackend
from rekindle.datastream.vocabulary import Boundedness, ChainingStrategy, OperatorKind, Partitioning

_numbers = count()


@dataclass(frozen=True)
class Upstream:
    """An operator's main or side output as an input, and how its records choose the next subtask."""

    transformation: Transformation
    partitioning: Partitioning | None = None  # None: forward if both sides have the same parallelism, else rebalance
    tag: str | None = None
    key_selector: Any = None
    partitioner: Any = None

    def by(self, partitioning: Partitioning, key_selector: Any = None, partitioner: Any = None) -> Upstream:
        """Return the same output with another partitioning."""
        return Upstream(self.transformation, partitioning, self.tag, key_selector, partitioner)


@dataclass(eq=False)
class Transformation:
    """One operator while the program is being built."""

    kind: OperatorKind
    name: str
    function: Any
    inputs: tuple[tuple[Upstream, ...], ...] = ()  # for each input, the streams of its union
    output_type: TypeInformation | None = None
    key_selectors: tuple[Any, ...] = ()
    key_type: TypeInformation | None = None
    details: OperatorDetails = field(default_factory=OperatorDetails)
    watermark_strategy: WatermarkStrategy | None = None  # sources only
    parallelism: int | None = None
    max_parallelism: int | None = None
    non_parallel: bool = False
    boundedness: Boundedness | None = None  # sources only
    uid: str | None = None
    uid_hash: str | None = None
    description: str = ""
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    slot_sharing_group: str | None = None  # None: the group of the inputs
    side_outputs: dict[str, TypeInformation | None] = field(default_factory=dict)
    implied: bool = False  # added as part of another operator: has no state, and users cannot set its uid
    number: int = field(default_factory=lambda: next(_numbers))  # counts transformations in the order of their creation


def with_inputs(transformations: Iterable[Transformation]) -> list[Transformation]:
    """Return these operators and all their inputs, in the order of their creation, so that inputs come first."""
    found: dict[int, Transformation] = {}
    waiting = list(transformations)
    while waiting:
        transformation = waiting.pop()
        if transformation.number not in found:
            found[transformation.number] = transformation
            waiting.extend(upstream.transformation for streams in transformation.inputs for upstream in streams)
    return [found[number] for number in sorted(found)]


@dataclass(frozen=True)
class Program:
    """A finished program, which `execute()` passes to the engine.

    Settings that have a key (chaining, buffer timeout, python files, ...) are in `configuration`.
    """

    job_name: str
    transformations: tuple[Transformation, ...]  # without their inputs, see `with_inputs`
    configuration: Configuration
    execution_config: ExecutionConfig
    checkpoint_config: CheckpointConfig
    runtime_mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING
    parallelism: int | None = None  # None: the number of the cluster's cores
    max_parallelism: int | None = None
    default_local_parallelism: int = 1
    restart_strategy: RestartStrategyConfiguration | None = None
    state_backend: StateBackend | None = None
    dataframes: Mapping[str, Any] = field(default_factory=dict)  # handle id -> DataFrame
    cached_files: tuple[CachedFile, ...] = ()
