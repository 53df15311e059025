"""Types, rows, time, configuration, restart strategies and job handles, under PyFlink's names."""

from __future__ import annotations

from rekindle.common.accumulators import (
    Accumulator,
    AverageAccumulator,
    DoubleCounter,
    DoubleMaximum,
    DoubleMinimum,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    ListAccumulator,
    LongCounter,
    SimpleAccumulator,
)
from rekindle.common.completable_future import CompletableFuture
from rekindle.common.config_options import ConfigOption, ConfigOptions
from rekindle.common.configuration import Configuration
from rekindle.common.execution_config import ExecutionConfig
from rekindle.common.input_dependency_constraint import InputDependencyConstraint
from rekindle.common.job_client import JobClient
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from rekindle.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from rekindle.common.serializer import TypeSerializer
from rekindle.common.time import Duration, Instant, Time, TimeUnit
from rekindle.common.type_system.aliases import aliases
from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.common.types import Row, RowKind
from rekindle.common.watermark_strategy import (
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "SimpleAccumulator",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TimeUnit",
    "TimestampAssigner",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
    "aliases",
]
