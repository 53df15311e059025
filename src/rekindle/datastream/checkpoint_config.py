"""`CheckpointConfig`: the settings of checkpoints, stored in the environment's configuration."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.time import Duration
from rekindle.config_parsers import in_millis, parse_bool
from rekindle.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from rekindle.datastream.checkpointing_mode import CheckpointingMode
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.errors import ConfigurationError

#: The name in Flink 1, which many programs use.
ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention
#: The shortest interval, as in Flink. With a shorter one the job would do little else.
_MIN_CHECKPOINT_MS = 10
#: Kept only so that programs can read it back. A warning says that it has no effect here.
_UNALIGNED_FORCED = config.ConfigOption("execution.checkpointing.unaligned.forced", parse_bool, False)


class CheckpointConfig(RefusesJavaNames):
    """The settings of checkpoints. `env.get_checkpoint_config()` returns those of the environment.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> settings = StreamExecutionEnvironment.get_execution_environment().get_checkpoint_config()
    >>> settings.set_checkpoint_interval(30_000).set_min_pause_between_checkpoints(500).is_checkpointing_enabled()
    True
    """

    #: The place of this name in Flink's Java API.
    ExternalizedCheckpointCleanup = ExternalizedCheckpointCleanup

    DEFAULT_MODE = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS = 1

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration
        self._storage: CheckpointStorage | None = None

    def is_checkpointing_enabled(self) -> bool:
        """Return whether a checkpoint interval is set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the mode: exactly once or at least once."""
        return CheckpointingMode[self._configuration.get(config.CHECKPOINT_MODE)]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set exactly once or at least once. Here both give exactly once, see `CheckpointingMode`."""
        self._configuration.set(
            config.CHECKPOINT_MODE, _name("checkpointing mode", CheckpointingMode, checkpointing_mode)
        )
        return self

    get_checkpointing_consistency_mode = get_checkpointing_mode
    set_checkpointing_consistency_mode = set_checkpointing_mode

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds between the starts of two checkpoints, or -1 without checkpoints."""
        interval = self._configuration.get(config.CHECKPOINT_INTERVAL)
        return -1 if interval is None else in_millis(interval)

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Make a checkpoint every `checkpoint_interval` milliseconds."""
        self._set_millis(config.CHECKPOINT_INTERVAL, "checkpoint interval", checkpoint_interval, _MIN_CHECKPOINT_MS)
        return self

    def get_checkpoint_timeout(self) -> int:
        """Return the milliseconds after which an unfinished checkpoint is aborted."""
        return self._configuration.get_millis(config.CHECKPOINT_TIMEOUT)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Abort a checkpoint that takes longer than `checkpoint_timeout` milliseconds."""
        self._set_millis(config.CHECKPOINT_TIMEOUT, "checkpoint timeout", checkpoint_timeout, _MIN_CHECKPOINT_MS)
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the shortest pause between two checkpoints, in milliseconds."""
        return self._configuration.get_millis(config.CHECKPOINT_MIN_PAUSE)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the shortest pause, in ms, between the end of a checkpoint and the start of the next."""
        self._set_millis(config.CHECKPOINT_MIN_PAUSE, "pause between checkpoints", min_pause_between_checkpoints, 0)
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """Return how many checkpoints may be in progress at a time."""
        return self._configuration.get(config.CHECKPOINT_MAX_CONCURRENT)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set how many checkpoints may be in progress at a time."""
        self._configuration.set(config.CHECKPOINT_MAX_CONCURRENT, max_concurrent_checkpoints)
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return whether one failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Tolerate no failed checkpoint, or any number: the older form of `set_tolerable_checkpoint_failure_number`."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else 2**31 - 1)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return how many consecutive checkpoints may fail before the job fails."""
        return self._configuration.get(config.CHECKPOINT_TOLERABLE_FAILURES)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Set how many consecutive checkpoints may fail before the job fails."""
        self._configuration.set(config.CHECKPOINT_TOLERABLE_FAILURES, tolerable_checkpoint_failure_number)
        return self

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set whether checkpoints are kept when the job is cancelled."""
        self._configuration.set(
            config.CHECKPOINT_RETENTION, _name("retention", ExternalizedCheckpointRetention, retention_mode)
        )
        return self

    #: Flink's earlier names.
    enable_externalized_checkpoints = set_externalized_checkpoint_retention
    set_externalized_checkpoint_cleanup = set_externalized_checkpoint_retention

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints may be kept after the end of the job."""
        retention = self.get_externalized_checkpoint_retention()
        return retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return whether checkpoints are kept when the job is cancelled."""
        return ExternalizedCheckpointRetention[self._configuration.get(config.CHECKPOINT_RETENTION)]

    #: Flink's earlier name.
    get_externalized_checkpoint_cleanup = get_externalized_checkpoint_retention

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Set where checkpoints are stored."""
        if not isinstance(storage, CheckpointStorage):
            raise ConfigurationError(f"set_checkpoint_storage() takes a CheckpointStorage, not {storage!r}.")
        self._storage = storage
        path = getattr(storage, "get_checkpoint_path", lambda: None)()
        if path is not None:
            self._configuration.set(config.CHECKPOINT_DIRECTORY, path)
        if isinstance(storage, JobManagerCheckpointStorage):
            self._configuration.set(config.CHECKPOINT_MAX_MEMORY, storage.get_max_state_size())
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Store checkpoints in this directory."""
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checkpoint_path))

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """Return the storage that was set here, or None."""
        return self._storage

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether unaligned checkpoints are enabled."""
        return self._configuration.get(config.UNALIGNED_ENABLED)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Put records that wait in front of a slow task at the end of an epoch's time into the checkpoint (I22)."""
        self._configuration.set(config.UNALIGNED_ENABLED, enabled)
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Disable unaligned checkpoints."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Set how long an epoch processes its records before an unaligned checkpoint takes the waiting ones."""
        if not isinstance(alignment_timeout, Duration):
            raise ConfigurationError(f"set_aligned_checkpoint_timeout() takes a Duration, not {alignment_timeout!r}.")
        self._configuration.set(config.ALIGNED_TIMEOUT, alignment_timeout.to_timedelta())
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return the timeout of `set_aligned_checkpoint_timeout`."""
        return Duration.of_millis(self._configuration.get_millis(config.ALIGNED_TIMEOUT))

    #: Flink's earlier names.
    set_alignment_timeout = set_aligned_checkpoint_timeout
    get_alignment_timeout = get_aligned_checkpoint_timeout

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Has no effect: unaligned checkpoints never need to be forced here."""
        self._configuration.set(_UNALIGNED_FORCED, force_unaligned_checkpoints)
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return the value of `set_force_unaligned_checkpoints`, which has no effect."""
        return self._configuration.get(_UNALIGNED_FORCED)

    def _set_millis(self, option: config.ConfigOption[Any], name: str, value: int, minimum: int) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise ConfigurationError(f"The {name} must be {minimum} ms or more, not {value!r}.")
        self._configuration.set(option, timedelta(milliseconds=value))


def _name(what: str, kind: type[Enum], value: object) -> str:
    if isinstance(value, kind):
        return value.name
    raise ConfigurationError(f"The {what} is {' or '.join(map(str, kind))}, not {value!r}.")
