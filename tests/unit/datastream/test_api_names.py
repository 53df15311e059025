"""The API has PyFlink's names and module paths, to the letter."""

from __future__ import annotations

import importlib

import pytest

import rekindle.datastream as api

PATHS = {
    "rekindle.common.accumulators": ["Accumulator", "AverageAccumulator", "Histogram", "IntCounter", "ListAccumulator"],
    "rekindle.datastream.async_data_stream": ["AsyncDataStream"],
    "rekindle.datastream.async_retry_predicates": [
        "empty_result_predicate",
        "exception_type_predicate",
        "has_exception_predicate",
    ],
    "rekindle.datastream.async_retry_strategies": [
        "ExponentialBackoffDelayRetryStrategy",
        "FixedDelayRetryStrategy",
        "NoRetryStrategy",
        "RetryPredicate",
    ],
    "rekindle.datastream.checkpoint_config": ["CheckpointConfig"],
    "rekindle.datastream.checkpoint_storage": [
        "CheckpointStorage",
        "CustomCheckpointStorage",
        "FileSystemCheckpointStorage",
        "JobManagerCheckpointStorage",
    ],
    "rekindle.datastream.checkpointing_mode": ["CheckpointingMode"],
    "rekindle.datastream.connectors.base": ["Source"],
    "rekindle.datastream.connectors.file_system": [
        "BucketAssigner",
        "BulkFormat",
        "BulkWriterFactory",
        "DefaultRollingPolicy",
        "FileEnumeratorProvider",
        "FileSink",
        "FileSource",
        "FileSourceBuilder",
        "FileSplitAssignerProvider",
        "OnCheckpointRollingPolicy",
        "OutputFileConfig",
        "RollingPolicy",
        "StreamFormat",
    ],
    "rekindle.datastream.connectors.number_seq": ["NumberSequenceSource"],
    "rekindle.datastream.data_stream": [
        "BroadcastConnectedStream",
        "BroadcastStream",
        "CachedDataStream",
        "CloseableIterator",
        "ConnectedStreams",
        "DataStream",
        "DataStreamSink",
        "KeyedStream",
    ],
    "rekindle.datastream.formats.avro": ["AvroRowDeserializationSchema", "AvroRowSerializationSchema", "AvroSchema"],
    "rekindle.datastream.formats.csv": ["CsvRowDeserializationSchema", "CsvRowSerializationSchema"],
    "rekindle.datastream.formats.json": ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"],
    "rekindle.datastream.execution_mode": ["RuntimeExecutionMode"],
    "rekindle.datastream.externalized_checkpoint_retention": ["ExternalizedCheckpointRetention"],
    "rekindle.datastream.functions": [
        "AggregateFunction",
        "AsyncFunction",
        "AsyncRetryPredicate",
        "AsyncRetryStrategy",
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
        "Partitioner",
        "ProcessFunction",
        "ReduceFunction",
        "RuntimeContext",
        "SinkFunction",
        "SourceFunction",
    ],
    "rekindle.datastream.output_tag": ["OutputTag"],
    "rekindle.datastream.slot_sharing_group": ["MemorySize", "SlotSharingGroup"],
    "rekindle.datastream.state": [
        "AggregatingState",
        "AggregatingStateDescriptor",
        "AppendingState",
        "BroadcastState",
        "ListState",
        "ListStateDescriptor",
        "MapState",
        "MapStateDescriptor",
        "MergingState",
        "OperatorStateStore",
        "ReadOnlyBroadcastState",
        "ReducingState",
        "ReducingStateDescriptor",
        "State",
        "StateDescriptor",
        "StateTtlConfig",
        "ValueState",
        "ValueStateDescriptor",
    ],
    "rekindle.datastream.state_backend": [
        "CustomStateBackend",
        "EmbeddedRocksDBStateBackend",
        "HashMapStateBackend",
        "PredefinedOptions",
        "StateBackend",
    ],
    "rekindle.datastream.stream_execution_environment": ["StreamExecutionEnvironment"],
    "rekindle.datastream.time_domain": ["TimeDomain"],
    "rekindle.datastream.timerservice": ["TimerService"],
}

METHODS = {
    "StreamExecutionEnvironment": """
        get_config set_parallelism set_max_parallelism register_slot_sharing_group get_parallelism get_max_parallelism
        set_runtime_mode set_buffer_timeout get_buffer_timeout disable_operator_chaining is_chaining_enabled
        is_chaining_of_operators_with_different_max_parallelism_enabled get_checkpoint_config enable_checkpointing
        get_checkpoint_interval get_checkpointing_mode get_checkpointing_consistency_mode
        enable_changelog_state_backend is_changelog_state_backend_enabled set_default_savepoint_directory
        get_default_savepoint_directory configure add_python_file set_python_requirements add_python_archive
        set_python_executable add_jars add_classpaths get_default_local_parallelism set_default_local_parallelism
        execute execute_async get_execution_plan register_cached_file get_execution_environment create_input
        add_source from_source from_collection is_unaligned_checkpoints_enabled is_force_unaligned_checkpoints close
        from_elements from_sequence from_dataframe set_restart_strategy set_state_backend explain""",
    "DataStream": """
        get_name name uid set_uid_hash set_parallelism set_max_parallelism get_type get_execution_environment
        get_execution_config force_non_parallel set_buffer_timeout start_new_chain disable_chaining
        slot_sharing_group set_description map flat_map key_by filter union connect shuffle project rescale rebalance
        forward broadcast process assign_timestamps_and_watermarks partition_custom add_sink sink_to execute_and_collect
        print get_side_output to_dataframe cache""",
    "KeyedStream": "reduce sum min max min_by max_by process key_by union connect AccumulateType",
    "DataStreamSink": """
        name uid set_uid_hash set_parallelism set_description disable_chaining slot_sharing_group""",
    "ConnectedStreams": "key_by map flat_map process",
    "BroadcastConnectedStream": "process",
    "CloseableIterator": "next close",
    "RuntimeContext": """
        get_state get_list_state get_map_state get_reducing_state get_aggregating_state get_task_name
        get_number_of_parallel_subtasks get_max_number_of_parallel_subtasks get_index_of_this_subtask
        get_attempt_number get_task_name_with_subtasks get_job_parameter get_metrics_group add_accumulator
        get_accumulator get_int_counter get_long_counter get_double_counter get_histogram get_distributed_cache""",
    "AsyncDataStream": "unordered_wait unordered_wait_with_retry ordered_wait ordered_wait_with_retry",
    "AsyncFunction": "async_invoke timeout open close",
    "AsyncRetryStrategy": """
        can_retry get_backoff_time_millis get_retry_predicate no_restart fixed_delay exponential_backoff""",
    "CachedDataStream": "invalidate",
    "IntervalJoin": "between in_event_time in_processing_time",
    "IntervalJoined": """
        lower_bound_exclusive upper_bound_exclusive side_output_left_late_data side_output_right_late_data process""",
    "CheckpointConfig": """
        is_checkpointing_enabled get_checkpointing_mode set_checkpointing_mode get_checkpoint_interval
        set_checkpoint_interval get_checkpoint_timeout set_checkpoint_timeout get_min_pause_between_checkpoints
        set_min_pause_between_checkpoints get_max_concurrent_checkpoints set_max_concurrent_checkpoints
        is_fail_on_checkpointing_errors set_fail_on_checkpointing_errors get_tolerable_checkpoint_failure_number
        set_tolerable_checkpoint_failure_number set_externalized_checkpoint_retention
        is_externalized_checkpoints_enabled get_externalized_checkpoint_retention is_unaligned_checkpoints_enabled
        enable_unaligned_checkpoints disable_unaligned_checkpoints set_aligned_checkpoint_timeout
        get_aligned_checkpoint_timeout set_alignment_timeout get_alignment_timeout set_force_unaligned_checkpoints
        is_force_unaligned_checkpoints""",
}


@pytest.mark.parametrize(("module", "names"), PATHS.items())
def test_names_are_where_pyflink_has_them(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []


@pytest.mark.parametrize(("cls", "methods"), METHODS.items())
def test_classes_have_pyflinks_methods(cls: str, methods: str) -> None:
    assert [method for method in methods.split() if not hasattr(getattr(api, cls), method)] == []


def test_the_names_of_flinks_java_api_are_exported_beside_them() -> None:
    rich = "Map FlatMap Filter Reduce Aggregate CoMap CoFlatMap Join FlatJoin CoGroup Window AllWindow Async Sink"
    names = [f"Rich{kind}Function" for kind in f"{rich} Source ParallelSource".split()]
    names += ["RichFunction", "ManagedInitializationContext", "ManagedSnapshotContext", "ExternalizedCheckpointCleanup"]
    names += ["MemoryStateBackend", "FsStateBackend", "RocksDBStateBackend"]
    assert [name for name in names if name not in api.__all__] == []
    assert api.CheckpointConfig.ExternalizedCheckpointCleanup is api.ExternalizedCheckpointCleanup
    assert api.ExternalizedCheckpointCleanup is api.ExternalizedCheckpointRetention


def test_everything_that_is_exported_exists_once() -> None:
    assert len(set(api.__all__)) == len(api.__all__)
    assert [name for name in api.__all__ if not hasattr(api, name)] == []


def test_contexts_have_pyflinks_methods() -> None:
    on_timer = api.KeyedProcessFunction.OnTimerContext
    assert {"get_current_key", "timer_service", "timestamp", "time_domain"} <= set(dir(on_timer))
    read_only = api.KeyedBroadcastProcessFunction.ReadOnlyContext
    assert {"get_broadcast_state", "timer_service", "get_current_key", "current_watermark"} <= set(dir(read_only))
    source = api.SourceFunction.SourceContext
    assert {"collect", "collect_with_timestamp", "emit_watermark", "mark_as_temporarily_idle"} <= set(dir(source))
