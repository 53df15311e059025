"""The enums that a program and its plan share: operator kinds, partitionings, chaining strategies, boundedness.

`rekindle.graph.nodes` exports them again for the engine. They are defined here because the graph may import the API,
but not the other way round.
"""

from __future__ import annotations

from enum import Enum, StrEnum


class OperatorKind(StrEnum):
    """The kind of an operator. The runtime has one operator class per kind."""

    SOURCE_FUNCTION = "source_function"  # function: SourceFunction
    SOURCE_READER = "source_reader"  # function: Source (creates readers that are polled)
    SOURCE_DATAFRAME = "source_dataframe"  # function: None; options: {"dataframe": handle id}
    TIMESTAMPS = "timestamps"  # function: WatermarkStrategy
    MAP = "map"
    FLAT_MAP = "flat_map"
    FILTER = "filter"
    PROCESS = "process"
    REDUCE = "reduce"  # keyed
    KEYED_PROCESS = "keyed_process"
    WINDOW = "window"  # keyed; function: WindowOperation
    CO_MAP = "co_map"
    CO_FLAT_MAP = "co_flat_map"
    CO_PROCESS = "co_process"
    KEYED_CO_PROCESS = "keyed_co_process"
    BROADCAST_PROCESS = "broadcast_process"
    KEYED_BROADCAST_PROCESS = "keyed_broadcast_process"
    INTERVAL_JOIN_PROCESS = "interval_join_process"  # keyed; options: bounds in ms, late tags, input types
    ASYNC_WAIT = "async_wait"  # function: AsyncFunctionDescriptor; options: {"input_type": the elements' type}
    SINK_FUNCTION = "sink_function"
    SINK = "sink"  # function: Sink (creates a writer, and perhaps a committer)
    COLLECT = "collect"  # records go to the driver as rows of the Spark job

    @property
    def is_source(self) -> bool:
        """Whether the node has no inputs."""
        return self in (self.SOURCE_FUNCTION, self.SOURCE_READER, self.SOURCE_DATAFRAME)

    @property
    def is_sink(self) -> bool:
        """Whether the node has no outputs."""
        return self in (self.SINK_FUNCTION, self.SINK, self.COLLECT)

    @property
    def has_side_outputs(self) -> bool:
        """Whether the function may `yield tag, value`, or the reader return values for side outputs."""
        return self.value.endswith("process") or self in (self.WINDOW, self.SOURCE_READER)


class Partitioning(StrEnum):
    """How records choose the subtask of the next operator."""

    FORWARD = "FORWARD"
    KEY = "HASH"
    REBALANCE = "REBALANCE"
    RESCALE = "RESCALE"
    SHUFFLE = "SHUFFLE"
    BROADCAST = "BROADCAST"
    GLOBAL = "GLOBAL"
    CUSTOM = "CUSTOM"


class ChainingStrategy(StrEnum):
    """Which neighbours an operator may chain to: both (ALWAYS), only the next one (HEAD), or none (NEVER)."""

    ALWAYS = "ALWAYS"
    HEAD = "HEAD"
    NEVER = "NEVER"


class Boundedness(Enum):
    """Whether a source ends by itself.

    >>> Boundedness.BOUNDED.name
    'BOUNDED'
    """

    BOUNDED = 0
    CONTINUOUS_UNBOUNDED = 1
