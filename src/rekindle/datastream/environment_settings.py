"""The settings of an environment. All settings that have a key are stored in one `Configuration`."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from typing import Self

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.execution_config import ExecutionConfig
from rekindle.common.java_names import JavaEnvironment, RefusesJavaNames
from rekindle.common.restart_strategy import RestartStrategyConfiguration
from rekindle.datastream.cached_files import CachedFile, cached_file
from rekindle.datastream.checkpoint_config import CheckpointConfig
from rekindle.datastream.checkpointing_mode import CheckpointingMode
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.python_dependencies import PythonArchive, PythonRequirements
from rekindle.datastream.slot_sharing_group import SlotSharingGroup
from rekindle.datastream.state_backend import StateBackend
from rekindle.datastream.time_characteristic import TimeCharacteristic
from rekindle.datastream.validation import check_max_parallelism, check_name, check_parallelism, warn_no_effect
from rekindle.errors import GraphError

_LOG = logging.getLogger("rekindle")


class StreamEnvironmentSettings(RefusesJavaNames):
    """The settings of a `StreamExecutionEnvironment`.

    >>> StreamEnvironmentSettings().set_parallelism(2).get_parallelism()
    2
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else Configuration(configuration)
        self._execution_config = ExecutionConfig(self._configuration)
        self._checkpoint_config = CheckpointConfig(self._configuration)
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._default_local_parallelism = _cores()
        self._restart_strategy: RestartStrategyConfiguration | None = None
        self._state_backend: StateBackend | None = None
        self._changelog: bool | None = None
        self._time_characteristic = TimeCharacteristic.EventTime
        self._cached_files: dict[str, CachedFile] = {}

    def get_config(self) -> ExecutionConfig:
        """Return the execution configuration."""
        return self._execution_config

    def get_configuration(self) -> Configuration:
        """Return all settings that have a key."""
        return self._configuration

    @property
    def _j_stream_execution_environment(self) -> JavaEnvironment:
        return JavaEnvironment(self._configuration)

    def configure(self, configuration: Configuration) -> None:
        """Apply these settings. Settings that are not among them keep their values.

        >>> env = StreamEnvironmentSettings()
        >>> env.configure(Configuration.from_dict({"parallelism.default": "3"}))
        >>> env.get_parallelism()
        3
        """
        self._configuration.add_all(configuration)

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the default number of subtasks of an operator. -1 means as many as Spark has cores."""
        if parallelism != ExecutionConfig.PARALLELISM_DEFAULT:
            check_parallelism("The environment", parallelism)
        self._configuration.set(config.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """Return the default number of subtasks of an operator."""
        parallelism = self._configuration.get(config.PARALLELISM)
        return parallelism if parallelism > 0 else self._default_local_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the default number of key groups of an operator, which is its largest possible parallelism."""
        check_max_parallelism("The environment", max_parallelism)
        self._configuration.set(config.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the default number of key groups, or -1 if it is derived from the parallelism."""
        return self._configuration.get(config.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """Return the parallelism if none is set: by default, the number of this machine's cores."""
        return self._default_local_parallelism

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism that applies if none is set otherwise."""
        self._default_local_parallelism = check_parallelism("The environment", parallelism)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Register a slot sharing group under its name."""
        known = self._slot_sharing_groups.setdefault(slot_sharing_group.get_name(), slot_sharing_group)
        if known != slot_sharing_group:
            raise GraphError(f"Slot sharing group '{known.get_name()}' is registered twice with different resources.")
        return self

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Set the execution mode: streaming (the default), batch, or batch if every source is bounded."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise GraphError(f"set_runtime_mode() takes a RuntimeExecutionMode, not {execution_mode!r}.")
        self._configuration.set(config.RUNTIME_MODE, execution_mode.name)
        return self

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> Self:
        """Flink 1's switch. Event time is always on; processing time turns periodic watermarks off.

        >>> env = StreamEnvironmentSettings().set_stream_time_characteristic(TimeCharacteristic.EventTime)
        >>> env.get_stream_time_characteristic().name
        'EventTime'
        """
        if not isinstance(characteristic, TimeCharacteristic):
            raise GraphError(f"set_stream_time_characteristic() takes a TimeCharacteristic, not {characteristic!r}.")
        if characteristic is TimeCharacteristic.IngestionTime:
            raise GraphError(
                "set_stream_time_characteristic(): ingestion time is gone since Flink 2.0: give each source a "
                "WatermarkStrategy with a TimestampAssigner that returns the clock's time."
            )
        _LOG.warning(
            "set_stream_time_characteristic() is gone since Flink 2.0: event time is always on, and each window says "
            "which time it goes by."
        )
        if characteristic is TimeCharacteristic.ProcessingTime:
            self._execution_config.set_auto_watermark_interval(0)
        self._time_characteristic = characteristic
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """Return what `set_stream_time_characteristic` was called with; event time is the default."""
        return self._time_characteristic

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Set the shortest time, in ms, between the starts of two epochs. -1 means an epoch's target duration."""
        if not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise GraphError(f"A buffer timeout is -1, 0 or more ms, not {timeout_millis!r}.")
        self._configuration.set(config.BUFFER_TIMEOUT_ENABLED, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.set(config.BUFFER_TIMEOUT, timedelta(milliseconds=timeout_millis))
        return self

    def get_buffer_timeout(self) -> int:
        """Return the shortest time, in ms, between the starts of two epochs, or -1 for an epoch's target duration."""
        enabled = self._configuration.get(config.BUFFER_TIMEOUT_ENABLED)
        return self._configuration.get_millis(config.BUFFER_TIMEOUT) if enabled else -1

    def disable_operator_chaining(self) -> Self:
        """Run every operator in a task of its own."""
        self._configuration.set(config.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Return whether operators without an exchange between them run in one task."""
        return self._configuration.get(config.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return whether operators with different numbers of key groups may run in one task."""
        return self._configuration.get(config.CHAIN_DIFFERENT_MAX_PARALLELISM)

    # -- checkpoints and restarts -------------------------------------------------------------------------------------

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the settings of checkpoints."""
        return self._checkpoint_config

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Make a checkpoint every `interval` milliseconds.

        >>> StreamEnvironmentSettings().enable_checkpointing(30_000).get_checkpoint_interval()
        30000
        """
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds between the starts of two checkpoints, or -1 without checkpoints."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the mode: exactly once or at least once."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return the mode: exactly once or at least once."""
        return self._checkpoint_config.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether unaligned checkpoints are enabled."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return the value of `set_force_unaligned_checkpoints`, which has no effect."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Set where keyed state lives while the job runs. Flink 1's backends also set where checkpoints are stored."""
        if not isinstance(state_backend, StateBackend):
            raise GraphError(f"set_state_backend() takes a StateBackend, not {state_backend!r}.")
        self._state_backend = state_backend
        self._configuration.set(config.STATE_BACKEND, state_backend.name())
        for option, value in state_backend.settings().items():
            self._configuration.set(option, value)
        storage = state_backend.checkpoint_storage()
        if storage is not None:
            self._checkpoint_config.set_checkpoint_storage(storage)
        return self

    def get_state_backend(self) -> StateBackend | None:
        """Return the state backend that was set, or None."""
        return self._state_backend

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Has no effect: checkpoints write only changes in any case."""
        self._changelog = enabled
        if enabled:
            warn_no_effect("enable_changelog_state_backend()", "checkpoints write only changes in any case")
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return the value of `enable_changelog_state_backend`, or None if it was not called."""
        return self._changelog

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Set the default directory of savepoints."""
        check_name("set_default_savepoint_directory()", directory)
        self._configuration.set(config.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the default directory of savepoints, or None."""
        return self._configuration.get(config.SAVEPOINT_DIRECTORY)

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """Set the restart strategy: whether and when a failed job is restarted."""
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise GraphError(
                "set_restart_strategy() takes a strategy of RestartStrategies, such as RestartStrategies.no_restart(), "
                f"not {restart_strategy_configuration!r}."
            )
        self._restart_strategy = restart_strategy_configuration
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration | None:
        """Return the restart strategy that was set, or None."""
        return self._restart_strategy

    # -- files and interpreter ----------------------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Ship a Python file, a package directory or a zip archive, so that functions can import from it."""
        check_name("add_python_file()", file_path)
        if not os.path.exists(file_path):
            raise GraphError(f"add_python_file(): there is no '{file_path}'.")
        files = self._configuration.get(config.PYTHON_FILES) or []
        self._configuration.set(config.PYTHON_FILES, [*files, os.path.abspath(file_path)])

    def set_python_executable(self, python_exec: str) -> None:
        """Set the Python interpreter of the slots: a path on every host, or one in an archive of `add_python_archive`.

        It needs the packages that Rekindle needs.
        """
        self._configuration.set(config.PYTHON_EXECUTABLE, check_name("set_python_executable()", python_exec))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install the packages of a requirements file for the job: from the directory, or else from pip's index.

        They are installed when the job starts, on the machine that starts it, and travel to the slots with the job.
        """
        check_name("set_python_requirements()", requirements_file_path)
        cache = "" if requirements_cache_dir is None else f"#{requirements_cache_dir}"
        requirements = PythonRequirements.parse(f"{requirements_file_path}{cache}")
        self._configuration.set(config.PYTHON_REQUIREMENTS, str(requirements))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive (zip, tar) where the functions run: they find it as `target_dir`, or else by its name.

        >>> StreamEnvironmentSettings().add_python_archive("no/such/model.zip", "model")
        Traceback (most recent call last):
        rekindle.errors.GraphError: python.archives: there is no '...no/such/model.zip'.
        """
        check_name("add_python_archive()", archive_path)
        archive = PythonArchive.parse(archive_path if target_dir is None else f"{archive_path}#{target_dir}")
        archives = self._configuration.get(config.PYTHON_ARCHIVES) or []
        self._configuration.set(config.PYTHON_ARCHIVES, [*archives, str(archive)])

    def add_jars(self, *jars_path: str) -> None:
        """Keep the paths in `pipeline.jars`; they have no effect: there is no Java code in a Rekindle job."""
        self._configuration.keep("pipeline.jars", jars_path)
        warn_no_effect("add_jars()", "connectors are Python here; jars for Spark itself go into `spark.jars`")

    def add_classpaths(self, *classpaths: str) -> None:
        """Keep the paths in `pipeline.classpaths`; they have no effect: there is no Java code in a Rekindle job."""
        self._configuration.keep("pipeline.classpaths", classpaths)
        warn_no_effect("add_classpaths()", "connectors are Python here; jars for Spark itself go into `spark.jars`")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Make a file or directory available to functions.

        `runtime_context.get_distributed_cache().get_file(name)` returns its path. A local file is shipped with the job,
        with its content at the start of the job. Every slot fetches a URL (`s3://`, `gs://`, `hdfs://`) itself.

        >>> StreamEnvironmentSettings().register_cached_file("no/such/file", "model")
        Traceback (most recent call last):
        rekindle.errors.GraphError: register_cached_file('model'): there is no '...no/such/file'.
        """
        self._cached_files[name] = cached_file(file_path, name, executable)


def _cores() -> int:
    """Return the number of cores that this process may use or, where the system does not tell, of all cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
