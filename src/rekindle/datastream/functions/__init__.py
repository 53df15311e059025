"""All kinds of user functions; every one has `open(runtime_context)` and `close()`."""

from __future__ import annotations

from rekindle.datastream.functions.base import Function, KeyedStateStore, RuntimeContext
from rekindle.datastream.functions.broadcast import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from rekindle.datastream.functions.checkpointed import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
)
from rekindle.datastream.functions.process import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from rekindle.datastream.functions.simple import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)
from rekindle.datastream.functions.sink import PrintSinkFunction, RichSinkFunction, SinkFunction
from rekindle.datastream.functions.source import (
    ParallelSourceFunction,
    RichParallelSourceFunction,
    RichSourceFunction,
    SourceFunction,
)

__all__ = [
    "CheckpointedFunction",
    "CheckpointListener",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "ListCheckpointed",
    "AggregateFunction",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "MapFunction",
    "ParallelSourceFunction",
    "Partitioner",
    "PrintSinkFunction",
    "ProcessFunction",
    "ReduceFunction",
    "RichParallelSourceFunction",
    "RichSinkFunction",
    "RichSourceFunction",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
]
