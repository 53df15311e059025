"""The settings of a program: all that have a key live in one `Configuration`."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from typing import Self

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.execution_config import ExecutionConfig
from rekindle.common.restart_strategy import RestartStrategyConfiguration
from rekindle.datastream.cached_files import CachedFile, cached_file
from rekindle.datastream.checkpoint_config import CheckpointConfig
from rekindle.datastream.checkpointing_mode import CheckpointingMode
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.slot_sharing_group import SlotSharingGroup
from rekindle.datastream.state_backend import StateBackend
from rekindle.datastream.validation import check_max_parallelism, check_name, check_parallelism
from rekindle.errors import GraphError

_LOG = logging.getLogger("rekindle")


class EnvironmentSettings:
    """What `StreamExecutionEnvironment` can be told about how a job runs.

    >>> EnvironmentSettings().set_parallelism(2).get_parallelism()
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
        self._cached_files: dict[str, CachedFile] = {}

    def get_config(self) -> ExecutionConfig:
        """The execution configuration."""
        return self._execution_config

    def get_configuration(self) -> Configuration:
        """All settings by key."""
        return self._configuration

    def configure(self, configuration: Configuration) -> None:
        """Take over these settings; those that are not in it stay as they are.

        >>> env = EnvironmentSettings()
        >>> env.configure(Configuration.from_dict({"parallelism.default": "3"}))
        >>> env.get_parallelism()
        3
        """
        self._configuration.add_all(configuration)

    def set_parallelism(self, parallelism: int) -> Self:
        """How many subtasks an operator has that says nothing itself; -1: as many as Spark has cores."""
        if parallelism != ExecutionConfig.PARALLELISM_DEFAULT:
            check_parallelism("The environment", parallelism)
        self._configuration.set(config.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """How many subtasks an operator has that says nothing itself."""
        parallelism = self._configuration.get(config.PARALLELISM)
        return parallelism if parallelism > 0 else self._default_local_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The number of key groups of operators that say nothing themselves, and so the limit of rescaling."""
        check_max_parallelism("The environment", max_parallelism)
        self._configuration.set(config.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups, -1 if it follows from the parallelism."""
        return self._configuration.get(config.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """What counts when nobody sets a parallelism: this machine's cores."""
        return self._default_local_parallelism

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """What counts when nobody sets a parallelism."""
        self._default_local_parallelism = check_parallelism("The environment", parallelism)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Make a group known by its name."""
        known = self._slot_sharing_groups.setdefault(slot_sharing_group.get_name(), slot_sharing_group)
        if known != slot_sharing_group:
            raise GraphError(f"Slot sharing group '{known.get_name()}' is registered twice with different resources.")
        return self

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Streaming (the default), batch, or batch when every source is bounded."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise GraphError(f"set_runtime_mode() takes a RuntimeExecutionMode, not {execution_mode!r}.")
        self._configuration.set(config.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """The longest time that records wait before they are sent on; -1: until there are many."""
        if not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise GraphError(f"A buffer timeout is -1, 0 or more ms, not {timeout_millis!r}.")
        self._configuration.set(config.BUFFER_TIMEOUT_ENABLED, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.set(config.BUFFER_TIMEOUT, timedelta(milliseconds=timeout_millis))
        return self

    def get_buffer_timeout(self) -> int:
        """The longest time that records wait before they are sent on, in milliseconds; -1: until there are many."""
        enabled = self._configuration.get(config.BUFFER_TIMEOUT_ENABLED)
        return self._configuration.get_millis(config.BUFFER_TIMEOUT) if enabled else -1

    def disable_operator_chaining(self) -> Self:
        """Let every operator be a task of its own."""
        self._configuration.set(config.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators that need no exchange between them run in one task."""
        return self._configuration.get(config.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators with different numbers of key groups may share a task."""
        return self._configuration.get(config.CHAIN_DIFFERENT_MAX_PARALLELISM)

    # -- checkpoints and restarts -------------------------------------------------------------------------------------

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of checkpoints."""
        return self._checkpoint_config

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Make a checkpoint every `interval` milliseconds.

        >>> EnvironmentSettings().enable_checkpointing(30_000).get_checkpoint_interval()
        30000
        """
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between the starts of two checkpoints; -1 without checkpoints."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return self._checkpoint_config.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints were asked for."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints were asked for by force."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Where keyed state lives while the job runs; Flink 1's backends also say where checkpoints go."""
        if not isinstance(state_backend, StateBackend):
            raise GraphError(f"set_state_backend() takes a StateBackend, not {state_backend!r}.")
        self._state_backend = state_backend
        self._configuration.set(config.STATE_BACKEND, state_backend.name())
        storage = state_backend.checkpoint_storage()
        if storage is not None:
            self._checkpoint_config.set_checkpoint_storage(storage)
        return self

    def get_state_backend(self) -> StateBackend | None:
        """The state backend that was set, if any."""
        return self._state_backend

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Has no effect: checkpoints hold what has changed in any case."""
        self._changelog = enabled
        if enabled:
            _no_effect("enable_changelog_state_backend()", "checkpoints write what has changed in any case")
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was set, None if nothing was."""
        return self._changelog

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Where savepoints go that name no directory."""
        check_name("set_default_savepoint_directory()", directory)
        self._configuration.set(config.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go that name no directory."""
        return self._configuration.get(config.SAVEPOINT_DIRECTORY)

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """What happens when the job fails."""
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise GraphError(
                f"set_restart_strategy() takes what RestartStrategies makes, not {restart_strategy_configuration!r}."
            )
        self._restart_strategy = restart_strategy_configuration
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration | None:
        """The restart strategy that was set, if any."""
        return self._restart_strategy

    # -- what the program needs ---------------------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Ship a Python file, a package directory or a zip archive, so that functions can import from it."""
        check_name("add_python_file()", file_path)
        if not os.path.exists(file_path):
            raise GraphError(f"add_python_file(): there is no '{file_path}'.")
        files = self._configuration.get(config.PYTHON_FILES) or []
        self._configuration.set(config.PYTHON_FILES, [*files, os.path.abspath(file_path)])

    def set_python_executable(self, python_exec: str) -> None:
        """The interpreter of the slots and of Spark's Python workers."""
        self._configuration.set(config.PYTHON_EXECUTABLE, check_name("set_python_executable()", python_exec))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Has no effect: packages are installed where Spark's executors run, not by a job."""
        _no_effect("set_python_requirements()", "install the packages in the executors' Python environment")

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Has no effect: archives are shipped by Spark itself."""
        _no_effect("add_python_archive()", "ship archives with Spark's own `spark.archives`")

    def add_jars(self, *jars_path: str) -> None:
        """Has no effect: there is no Java code in a Rekindle job."""
        _no_effect("add_jars()", "connectors are Python here; jars for Spark itself go into `spark.jars`")

    def add_classpaths(self, *classpaths: str) -> None:
        """Has no effect: there is no Java code in a Rekindle job."""
        _no_effect("add_classpaths()", "connectors are Python here; jars for Spark itself go into `spark.jars`")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Give functions a file or directory: `runtime_context.get_distributed_cache().get_file(name)` is its path.

        What is on this machine travels with the job, as it is when the job starts; a URL (`s3://`, `gs://`, `hdfs://`)
        is fetched by every slot.

        >>> EnvironmentSettings().register_cached_file("no/such/file", "model")
        Traceback (most recent call last):
        rekindle.errors.GraphError: register_cached_file('model'): there is no '...no/such/file'.
        """
        self._cached_files[name] = cached_file(file_path, name, executable)


def _cores() -> int:
    """The cores that this process may use; not every system says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _no_effect(method: str, instead: str) -> None:
    _LOG.warning("%s has no effect in Rekindle: %s.", method, instead)
