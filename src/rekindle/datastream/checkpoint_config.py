"""When and how checkpoints are made, as data over the environment's configuration."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rekindle import config
from rekindle.common.configuration import Configuration
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

#: The name in Flink 1, of which there are many programs.
ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention
#: Flink refuses shorter intervals: the job would do little else.
_MIN_CHECKPOINT_MS = 10
#: Kept for those who read it back; a warning says that it has no meaning here.
_UNALIGNED_FORCED = config.ConfigOption("execution.checkpointing.unaligned.forced", parse_bool, False)


class CheckpointConfig:
    """The settings of checkpoints; `env.get_checkpoint_config()` gives the environment's.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> settings = StreamExecutionEnvironment.get_execution_environment().get_checkpoint_config()
    >>> settings.set_checkpoint_interval(30_000).set_min_pause_between_checkpoints(500).is_checkpointing_enabled()
    True
    """

    #: Where Flink's Java API has it.
    ExternalizedCheckpointCleanup = ExternalizedCheckpointCleanup

    DEFAULT_MODE = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS = 1

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration
        self._storage: CheckpointStorage | None = None

    def is_checkpointing_enabled(self) -> bool:
        """Whether an interval is set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return CheckpointingMode[self._configuration.get(config.CHECKPOINT_MODE)]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Exactly once or at least once; both give exactly once here, because barriers are always aligned (I19)."""
        self._configuration.set(config.CHECKPOINT_MODE, checkpointing_mode.name)
        return self

    get_checkpointing_consistency_mode = get_checkpointing_mode
    set_checkpointing_consistency_mode = set_checkpointing_mode

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between the starts of two checkpoints; -1 without checkpoints."""
        interval = self._configuration.get(config.CHECKPOINT_INTERVAL)
        return -1 if interval is None else in_millis(interval)

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Make a checkpoint every so many milliseconds."""
        self._set_millis(config.CHECKPOINT_INTERVAL, "checkpoint interval", checkpoint_interval, _MIN_CHECKPOINT_MS)
        return self

    def get_checkpoint_timeout(self) -> int:
        """Milliseconds after which an unfinished checkpoint is aborted."""
        return self._configuration.get_millis(config.CHECKPOINT_TIMEOUT)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Abort a checkpoint that takes longer than so many milliseconds."""
        self._set_millis(config.CHECKPOINT_TIMEOUT, "checkpoint timeout", checkpoint_timeout, _MIN_CHECKPOINT_MS)
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """The shortest pause between two checkpoints, in milliseconds."""
        return self._configuration.get_millis(config.CHECKPOINT_MIN_PAUSE)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Begin no checkpoint sooner than so many milliseconds after the last one ended."""
        self._set_millis(config.CHECKPOINT_MIN_PAUSE, "pause between checkpoints", min_pause_between_checkpoints, 0)
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """How many checkpoints may be under way at a time."""
        return self._configuration.get(config.CHECKPOINT_MAX_CONCURRENT)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """How many checkpoints may be under way at a time."""
        self._configuration.set(config.CHECKPOINT_MAX_CONCURRENT, max_concurrent_checkpoints)
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether one failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Flink's older form of `set_tolerable_checkpoint_failure_number`: 0 failures, or any number."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else 2**31 - 1)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """How many checkpoints in a row may fail before the job does."""
        return self._configuration.get(config.CHECKPOINT_TOLERABLE_FAILURES)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """How many checkpoints in a row may fail before the job does."""
        self._configuration.set(config.CHECKPOINT_TOLERABLE_FAILURES, tolerable_checkpoint_failure_number)
        return self

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """What happens to checkpoints when the job is cancelled."""
        self._configuration.set(config.CHECKPOINT_RETENTION, retention_mode.name)
        return self

    #: Flink's earlier name.
    enable_externalized_checkpoints = set_externalized_checkpoint_retention

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether checkpoints outlive the job's end in some case."""
        retention = self.get_externalized_checkpoint_retention()
        return retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """What happens to checkpoints when the job is cancelled."""
        return ExternalizedCheckpointRetention[self._configuration.get(config.CHECKPOINT_RETENTION)]

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Where checkpoints are stored."""
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
        """Where checkpoints are stored, if it was set here."""
        return self._storage

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints were asked for."""
        return self._configuration.get(config.UNALIGNED_ENABLED)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Let what waits in front of a slow task when an epoch's time is over go into the checkpoint (I22)."""
        self._configuration.set(config.UNALIGNED_ENABLED, enabled)
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Take back `enable_unaligned_checkpoints`."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """How long an epoch goes on for its records before unaligned checkpoints leave what waits; see the option."""
        self._configuration.set(config.ALIGNED_TIMEOUT, alignment_timeout.to_timedelta())
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """The timeout that was set."""
        return Duration.of_millis(self._configuration.get_millis(config.ALIGNED_TIMEOUT))

    #: Flink's earlier names.
    set_alignment_timeout = set_aligned_checkpoint_timeout
    get_alignment_timeout = get_aligned_checkpoint_timeout

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Has no effect: there is nothing here that unaligned checkpoints have to be forced for."""
        self._configuration.set(_UNALIGNED_FORCED, force_unaligned_checkpoints)
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints were asked for by force."""
        return self._configuration.get(_UNALIGNED_FORCED)

    def _set_millis(self, option: config.ConfigOption[Any], name: str, value: int, minimum: int) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise ConfigurationError(f"The {name} must be {minimum} ms or more, not {value!r}.")
        self._configuration.set(option, timedelta(milliseconds=value))
