"""The DataStream API, with PyFlink's names: change `pyflink` to `rekindle` in the imports."""

from __future__ import annotations

from rekindle.datastream.checkpoint_config import CheckpointConfig
from rekindle.datastream.checkpoint_storage import (
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from rekindle.datastream.checkpointing_mode import CheckpointingMode
from rekindle.datastream.data_stream import (
    BroadcastConnectedStream,
    BroadcastStream,
    CloseableIterator,
    ConnectedStreams,
    DataStream,
    DataStreamSink,
    KeyedStream,
)
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.datastream.functions import (
    AggregateFunction,
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CheckpointListener,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStateStore,
    KeySelector,
    ListCheckpointed,
    MapFunction,
    ParallelSourceFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    RichParallelSourceFunction,
    RichSinkFunction,
    RichSourceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
)
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from rekindle.datastream.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment
from rekindle.datastream.time_domain import TimeDomain
from rekindle.datastream.timerservice import TimerService

__all__ = [
    # environment
    "StreamExecutionEnvironment",
    "RuntimeExecutionMode",
    # streams
    "DataStream",
    "KeyedStream",
    "ConnectedStreams",
    "BroadcastStream",
    "BroadcastConnectedStream",
    "DataStreamSink",
    "CloseableIterator",
    "OutputTag",
    # functions
    "Function",
    "RuntimeContext",
    "KeyedStateStore",
    "MapFunction",
    "CoMapFunction",
    "FlatMapFunction",
    "CoFlatMapFunction",
    "FilterFunction",
    "ReduceFunction",
    "AggregateFunction",
    "KeySelector",
    "Partitioner",
    "ProcessFunction",
    "KeyedProcessFunction",
    "CoProcessFunction",
    "KeyedCoProcessFunction",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "KeyedBroadcastProcessFunction",
    "SourceFunction",
    "ParallelSourceFunction",
    "RichSourceFunction",
    "RichParallelSourceFunction",
    "SinkFunction",
    "RichSinkFunction",
    # functions that take part in checkpoints
    "CheckpointedFunction",
    "CheckpointListener",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "ListCheckpointed",
    # time
    "TimeDomain",
    "TimerService",
    # checkpoints and state backends
    "CheckpointConfig",
    "CheckpointingMode",
    "ExternalizedCheckpointRetention",
    "CheckpointStorage",
    "JobManagerCheckpointStorage",
    "FileSystemCheckpointStorage",
    "CustomCheckpointStorage",
    "StateBackend",
    "HashMapStateBackend",
    "EmbeddedRocksDBStateBackend",
    "CustomStateBackend",
    "PredefinedOptions",
    # slots
    "SlotSharingGroup",
    "MemorySize",
]
