"""State descriptors, time to live, state backends, checkpoint settings, slot sharing groups."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from rekindle import config
from rekindle.common import Configuration, Duration, Time, Types
from rekindle.datastream import (
    AggregateFunction,
    CheckpointConfig,
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    FsStateBackend,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    MemorySize,
    MemoryStateBackend,
    PredefinedOptions,
    ReduceFunction,
    RocksDBStateBackend,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.errors import ConfigurationError, GraphError, TypeMismatchError


class Sum(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


# -- descriptors ------------------------------------------------------------------------------------------------------


def test_descriptors_know_their_types() -> None:
    assert ValueStateDescriptor("v", int).type_info == Types.LONG()
    assert ListStateDescriptor("l", str).type_info == Types.LIST(Types.STRING())
    assert MapStateDescriptor("m", str, int).type_info == Types.MAP(Types.STRING(), Types.LONG())
    assert ReducingStateDescriptor("r", Sum(), float).type_info == Types.DOUBLE()
    assert AggregatingStateDescriptor("a", Count(), Types.INT()).type_info == Types.INT()


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_state_has_a_name(name: Any) -> None:
    for make in (
        lambda: ValueStateDescriptor(name, int),
        lambda: ListStateDescriptor(name, int),
        lambda: MapStateDescriptor(name, int, int),
    ):
        with pytest.raises(GraphError, match="non-empty string"):
            make()


def test_descriptor_types_are_checked() -> None:
    with pytest.raises(TypeMismatchError, match="no type"):
        ValueStateDescriptor("v", "int")


def test_reducing_state_takes_functions_and_callables() -> None:
    assert ReducingStateDescriptor("r", max, int).get_reduce_function().reduce(1, 2) == 2
    assert isinstance(ReducingStateDescriptor("r", Sum(), int).get_reduce_function(), Sum)
    with pytest.raises(GraphError, match="called with 2 arguments"):
        ReducingStateDescriptor("r", lambda a: a, int)  # type: ignore[arg-type, misc]
    with pytest.raises(GraphError, match="takes an AggregateFunction"):
        AggregatingStateDescriptor("a", Sum(), int)  # type: ignore[arg-type]


def test_descriptors_are_equal_by_kind_name_and_type_and_can_be_pickled() -> None:
    descriptor = MapStateDescriptor("m", str, int)
    assert descriptor == MapStateDescriptor("m", str, int)
    assert descriptor != MapStateDescriptor("m", str, str)
    assert ValueStateDescriptor("m", int) != ListStateDescriptor("m", int)
    assert pickle.loads(pickle.dumps(descriptor)) == descriptor


# -- time to live -----------------------------------------------------------------------------------------------------


def test_ttl_defaults_are_flinks() -> None:
    ttl = StateTtlConfig.new_builder(Time.seconds(5)).build()
    assert ttl.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert ttl.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert ttl.is_enabled()
    cleanup = ttl.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background()
    assert not cleanup.in_full_snapshot()
    incremental = cleanup.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (5, False)


def test_ttl_says_what_was_set() -> None:
    ttl = (
        StateTtlConfig.new_builder(Time.seconds(5))
        .set_ttl(Time.minutes(1))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(200, Duration.of_days(2))
        .disable_cleanup_in_background()
        .build()
    )
    assert ttl.get_ttl() == Time.minutes(1)
    assert ttl.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    cleanup = ttl.get_cleanup_strategies()
    assert cleanup.in_full_snapshot()
    assert not cleanup.is_cleanup_in_background()
    rocksdb = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert rocksdb is not None
    assert (rocksdb.get_query_time_after_num_entries(), rocksdb.get_periodic_compaction_time()) == (
        200,
        Duration.of_days(2),
    )


def test_ttl_without_background_cleanup_has_only_what_was_asked_for() -> None:
    cleanup = StateTtlConfig.new_builder(Time.seconds(5)).disable_cleanup_in_background().build()
    assert cleanup.get_cleanup_strategies().get_incremental_cleanup_strategy() is None


def test_a_ttl_is_any_amount_of_time() -> None:
    amounts = (Time.seconds(5), Duration.of_seconds(5), timedelta(seconds=5))
    assert {StateTtlConfig.new_builder(amount).build().get_ttl() for amount in amounts} == {Time.seconds(5)}


def test_impossible_ttls_are_refused() -> None:
    with pytest.raises(GraphError, match="longer than 0 ms"):
        StateTtlConfig.new_builder(Time.seconds(0)).build()
    with pytest.raises(GraphError, match="1 or more entries"):
        StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(0, True)
    with pytest.raises(GraphError, match="takes a StateTtlConfig"):
        ValueStateDescriptor("v", int).enable_time_to_live(5)  # type: ignore[arg-type]


def test_a_descriptor_carries_its_ttl() -> None:
    descriptor = ValueStateDescriptor("v", int)
    ttl = StateTtlConfig.new_builder(Time.seconds(1)).build()
    descriptor.enable_time_to_live(ttl)
    assert descriptor.get_ttl_config() is ttl


# -- checkpoints ------------------------------------------------------------------------------------------------------


def test_checkpoint_settings_live_in_the_configuration() -> None:
    configuration = Configuration()
    settings = (
        CheckpointConfig(configuration)
        .set_checkpoint_interval(30_000)
        .set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
        .set_checkpoint_timeout(600_000)
        .set_min_pause_between_checkpoints(500)
        .set_max_concurrent_checkpoints(2)
        .set_tolerable_checkpoint_failure_number(3)
        .set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
        .enable_unaligned_checkpoints()
        .set_aligned_checkpoint_timeout(Duration.of_seconds(3))
        .set_force_unaligned_checkpoints()
        .set_checkpoint_storage(FileSystemCheckpointStorage("file:///chk"))
    )
    again = CheckpointConfig(configuration)
    assert again.is_checkpointing_enabled()
    assert again.get_checkpoint_interval() == 30_000
    assert again.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert again.get_checkpoint_timeout() == 600_000
    assert again.get_min_pause_between_checkpoints() == 500
    assert again.get_max_concurrent_checkpoints() == 2
    assert again.get_tolerable_checkpoint_failure_number() == 3
    assert again.get_externalized_checkpoint_retention() is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    assert again.is_externalized_checkpoints_enabled()
    assert again.is_unaligned_checkpoints_enabled()
    assert again.get_aligned_checkpoint_timeout() == Duration.of_seconds(3)
    assert again.is_force_unaligned_checkpoints()
    assert configuration.get_string("execution.checkpointing.dir", "") == "file:///chk"
    assert isinstance(settings.get_checkpoint_storage(), FileSystemCheckpointStorage)


def test_checkpoint_defaults_are_flinks() -> None:
    settings = CheckpointConfig()
    assert (settings.is_checkpointing_enabled(), settings.get_checkpoint_interval()) == (False, -1)
    assert settings.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert settings.is_fail_on_checkpointing_errors()
    assert not settings.set_fail_on_checkpointing_errors(False).is_fail_on_checkpointing_errors()


@pytest.mark.parametrize("interval", [0, 9, -5, 2.5])
def test_too_short_intervals_are_refused(interval: Any) -> None:
    with pytest.raises(ConfigurationError, match="10 ms or more"):
        CheckpointConfig().set_checkpoint_interval(interval)


def test_storages_and_backends_are_data() -> None:
    assert JobManagerCheckpointStorage().get_max_state_size() == 5 * 1024 * 1024
    with pytest.raises(GraphError, match="needs a directory"):
        FileSystemCheckpointStorage()
    with pytest.raises(GraphError, match="threshold"):
        FileSystemCheckpointStorage("file:///chk", file_state_size_threshold=10**9)
    rocksdb = EmbeddedRocksDBStateBackend(True)
    rocksdb.set_db_storage_paths("/a", "/b")
    rocksdb.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    rocksdb.set_number_of_transfer_threads(8)
    assert (rocksdb.get_db_storage_paths(), rocksdb.get_number_of_transfer_threads()) == (["/a", "/b"], 8)
    assert rocksdb.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
    assert HashMapStateBackend().name() == "hashmap"
    with pytest.raises(GraphError, match="At least one thread"):
        rocksdb.set_number_of_transfer_threads(0)


def test_flink_1s_backends_say_where_checkpoints_go_too() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    checkpoints = env.set_state_backend(FsStateBackend("file:///checkpoints")).get_checkpoint_config()
    assert env.get_configuration().get(config.STATE_BACKEND) == "hashmap"
    assert isinstance(checkpoints.get_checkpoint_storage(), FileSystemCheckpointStorage)
    assert env.get_configuration().get(config.CHECKPOINT_DIRECTORY) == "file:///checkpoints"
    memory = env.set_state_backend(MemoryStateBackend(max_state_size=7)).get_checkpoint_config()
    storage = memory.get_checkpoint_storage()
    assert isinstance(storage, JobManagerCheckpointStorage)
    assert storage.get_max_state_size() == 7
    rocks = RocksDBStateBackend("file:///checkpoints", enable_incremental_checkpointing=True)
    assert isinstance(rocks.checkpoint_storage(), FileSystemCheckpointStorage)
    assert rocks.is_incremental_checkpoints_enabled()


def test_memory_sizes_compare_in_every_way() -> None:
    small, same, large = MemorySize(1), MemorySize(1), MemorySize.of_mebi_bytes(1)
    assert small <= same <= large
    assert large >= small
    assert large > small
    assert not small > same
    assert sorted([large, small]) == [small, large]
    with pytest.raises(TypeError):
        _ = small <= 1  # type: ignore[operator]


def test_a_slot_sharing_group_asks_for_something_or_nothing() -> None:
    builder = SlotSharingGroup.builder("g")
    with pytest.raises(GraphError, match="Slot sharing group 'g': the task heap memory must be more than 0 bytes"):
        builder.set_cpu_cores(1.0).set_task_heap_memory_mb(0)
    for cores in (0, -1.0, "two"):
        with pytest.raises(GraphError, match="Slot sharing group 'g': the CPU cores must be a number above 0"):
            builder.set_cpu_cores(cores)  # type: ignore[arg-type]


def test_slot_sharing_groups_are_data() -> None:
    group = (
        SlotSharingGroup.builder("g")
        .set_cpu_cores(2.0)
        .set_task_heap_memory_mb(10)
        .set_managed_memory(MemorySize(1024))
        .set_external_resource("gpu", 1.0)
        .build()
    )
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(10)
    assert group.get_managed_memory() == MemorySize(1024)
    assert group.get_external_resources() == {"gpu": 1.0}
    with pytest.raises(GraphError, match="both CPU cores and task heap"):
        SlotSharingGroup.builder("g").set_cpu_cores(1.0).build()
    with pytest.raises(GraphError, match="0 or more"):
        MemorySize(-1)


@pytest.mark.parametrize("mode", ["EXACTLY_ONCE", 1, None])
def test_the_checkpointing_mode_is_one_of_its_class(mode: Any) -> None:
    with pytest.raises(
        ConfigurationError,
        match=rf"^The checkpointing mode is CheckpointingMode.EXACTLY_ONCE or .*AT_LEAST_ONCE, not {mode!r}\.$",
    ):
        CheckpointConfig().set_checkpointing_mode(mode)
    with pytest.raises(ConfigurationError, match="The checkpointing mode is CheckpointingMode"):
        StreamExecutionEnvironment.get_execution_environment().enable_checkpointing(1000, "EXACTLY_ONCE")  # type: ignore[arg-type]


@pytest.mark.parametrize("retention", ["RETAIN", True, CheckpointingMode.EXACTLY_ONCE])
def test_the_retention_of_checkpoints_is_one_of_its_class(retention: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^The retention is .*Retention\.RETAIN_ON_CANCELLATION or .*, not "):
        CheckpointConfig().enable_externalized_checkpoints(retention)


def test_an_alignment_timeout_is_a_duration() -> None:
    with pytest.raises(ConfigurationError, match=r"^set_aligned_checkpoint_timeout\(\) takes a Duration, not 5\.$"):
        CheckpointConfig().set_aligned_checkpoint_timeout(5)  # type: ignore[arg-type]
