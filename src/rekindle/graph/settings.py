"""The settings that travel with the plan: frozen groups, passed on by reference. Their defaults are in `config.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.execution_config import ExecutionConfig
from rekindle.config_parsers import in_millis
from rekindle.datastream.checkpoint_config import CheckpointConfig
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.errors import ConfigurationError
from rekindle.protocol import Heartbeat


@dataclass(frozen=True)
class StateBackendSettings:
    """Where keyed state lives while the job runs."""

    name: str
    #: The memory of a slot for keyed state that is on disk: decoded rows, RocksDB's caches and buffers.
    managed_bytes: int
    #: Where RocksDB's files may lie; none: in the slot's own directory.
    local_directories: tuple[str, ...] = ()

    @property
    def is_rocksdb(self) -> bool:
        """Whether state lives in RocksDB."""
        return self.name == "rocksdb"

    @staticmethod
    def of(configuration: Configuration) -> StateBackendSettings:
        """Read the settings from a configuration; refuse RocksDB if its package is missing."""
        name = configuration.get(config.STATE_BACKEND)
        if name == "rocksdb" and find_spec("rocksdict") is None:
            raise ConfigurationError(
                "State backend 'rocksdb' needs the package rocksdict, which is not installed: run pip install "
                "'rekindle[rocksdb]', or set state.backend.type: hashmap."
            )
        return StateBackendSettings(name, configuration.get(config.MANAGED_MEMORY), rocksdb_directories(configuration))


def rocksdb_directories(configuration: Configuration) -> tuple[str, ...]:
    """The directories that the user chose for RocksDB; none: the slots' own ones.

    >>> rocksdb_directories(Configuration.from_dict({"io.tmp.dirs": "/a;/b"}))
    ('/a', '/b')
    """
    chosen = configuration.get(config.ROCKSDB_LOCAL_DIRECTORIES) or configuration.get(config.TEMPORARY_DIRECTORIES)
    return tuple(chosen or ())


@dataclass(frozen=True)
class LocalRecoverySettings:
    """Copies of the last checkpoint's state files on the hosts of the slots.

    >>> LocalRecoverySettings.of(Configuration.from_dict({"state.backend.local-recovery": "true"}))
    LocalRecoverySettings(restores=True, keeps=True, directories=())
    """

    #: Whether a slot that starts again reads its state from the copies on its host.
    restores: bool
    #: Whether slots keep copies.
    keeps: bool
    #: Directories for the copies; none: the hosts' temporary directories.
    directories: tuple[str, ...] = ()

    @staticmethod
    def of(configuration: Configuration) -> LocalRecoverySettings:
        """Read the settings from a configuration: copies are kept if they are wanted, unless it says otherwise."""
        restores, keeps = configuration.get(config.LOCAL_RECOVERY), configuration.get(config.LOCAL_BACKUP)
        directories = configuration.get(config.LOCAL_BACKUP_DIRECTORIES) or configuration.get(
            config.TEMPORARY_DIRECTORIES
        )
        return LocalRecoverySettings(restores, restores if keeps is None else keeps, tuple(directories or ()))


@dataclass(frozen=True)
class ReplaySettings:
    """Whether and how much input of the tasks is kept, to replay a failure."""

    records_input: bool
    #: The most bytes that a subtask keeps.
    max_bytes: int
    #: How many failures have their input kept.
    failures: int
    #: Whether the job's code is kept beside it.
    keeps_code: bool

    @staticmethod
    def of(configuration: Configuration) -> ReplaySettings:
        """Read the settings from a configuration."""
        read = configuration.get
        return ReplaySettings(
            read(config.REPLAY_RECORD_INPUT),
            read(config.REPLAY_MAX_BYTES),
            read(config.REPLAY_FAILURES),
            read(config.REPLAY_KEEP_CODE),
        )


@dataclass(frozen=True)
class CheckpointPolicy:
    """When checkpoints are made, how long they are kept, and where. An interval of -1: only requested ones are made.

    >>> CheckpointPolicy(interval_ms=1000).enabled, CheckpointPolicy().enabled
    (True, False)
    """

    #: -1 without checkpoints, and always in batch mode.
    interval_ms: int = -1
    timeout_ms: int = in_millis(config.CHECKPOINT_TIMEOUT.default)
    min_pause_ms: int = in_millis(config.CHECKPOINT_MIN_PAUSE.default)
    max_concurrent: int = config.CHECKPOINT_MAX_CONCURRENT.default
    tolerable_failures: int = config.CHECKPOINT_TOLERABLE_FAILURES.default
    num_retained: int = config.CHECKPOINT_NUM_RETAINED.default
    retention: ExternalizedCheckpointRetention = ExternalizedCheckpointRetention[config.CHECKPOINT_RETENTION.default]
    #: Keep the final checkpoint: a program started with `latest` each time must find that the job had ended.
    keep_final: bool = False
    final_retry_ms: int = 1000  # the pause after a failed final checkpoint: a failing store is not asked in a busy loop
    directory: str | None = None
    savepoint_directory: str | None = None
    #: Whether a checkpoint writes only the state that changed since an earlier one.
    incremental: bool = config.CHECKPOINT_INCREMENTAL.default
    #: How many checkpoints have their statistics kept.
    statistics_retained: int = config.CHECKPOINT_HISTORY.default
    #: The largest state of one subtask in a checkpoint in the driver's memory.
    max_memory_bytes: int = config.CHECKPOINT_MAX_MEMORY.default
    #: Whether checkpoints take in the records that wait in front of a slow task.
    unaligned: bool = False
    #: How long an epoch works on its records before it leaves the rest waiting, if longer than its target time.
    aligned_timeout_ms: int = in_millis(config.ALIGNED_TIMEOUT.default)

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are made periodically."""
        return self.interval_ms > 0

    @property
    def incomplete(self) -> int:
        """The most checkpoints that are incomplete at a time: those under way, and those that may fail in a row."""
        return self.max_concurrent + self.tolerable_failures

    @staticmethod
    def of(configuration: Configuration, *, batch: bool = False) -> CheckpointPolicy:
        """Read the settings from a configuration."""
        read, checkpoints = configuration.get, CheckpointConfig(configuration)
        return CheckpointPolicy(
            interval_ms=-1 if batch else checkpoints.get_checkpoint_interval(),
            timeout_ms=checkpoints.get_checkpoint_timeout(),
            min_pause_ms=checkpoints.get_min_pause_between_checkpoints(),
            max_concurrent=checkpoints.get_max_concurrent_checkpoints(),
            tolerable_failures=checkpoints.get_tolerable_checkpoint_failure_number(),
            num_retained=read(config.CHECKPOINT_NUM_RETAINED),
            retention=checkpoints.get_externalized_checkpoint_retention(),
            keep_final=read(config.RECOVERY_PATH) == "latest",
            directory=read(config.CHECKPOINT_DIRECTORY),
            savepoint_directory=read(config.SAVEPOINT_DIRECTORY),
            incremental=read(config.CHECKPOINT_INCREMENTAL),
            statistics_retained=read(config.CHECKPOINT_HISTORY),
            max_memory_bytes=read(config.CHECKPOINT_MAX_MEMORY),
            unaligned=not batch and checkpoints.is_unaligned_checkpoints_enabled(),
            aligned_timeout_ms=configuration.get_millis(config.ALIGNED_TIMEOUT),
        )


@dataclass(frozen=True)
class EpochLimits:
    """The limits of epochs: records, duration and interval."""

    initial_records: int
    max_records: int
    #: Duration of an epoch under load.
    target_ms: float
    #: The minimum time between the starts of two epochs.
    min_interval_ms: float
    #: The time of an epoch after which records that wait in front of a task stay there and go into checkpoints; None:
    #: every epoch processes all of its records.
    leave_after_ms: float | None = None

    @staticmethod
    def of(configuration: Configuration, checkpoints: CheckpointPolicy) -> EpochLimits:
        """Read the settings from a configuration; epochs last at most half a checkpoint interval (I22).

        A checkpoint that is due waits for the epoch under way, and its barrier takes another one.
        """
        read, millis = configuration.get, configuration.get_millis
        wanted_ms = millis(config.EPOCH_TARGET_DURATION)
        target_ms = min(wanted_ms, checkpoints.interval_ms / 2) if checkpoints.enabled else wanted_ms
        unaligned = checkpoints.enabled and checkpoints.unaligned
        return EpochLimits(
            initial_records=read(config.EPOCH_INITIAL_RECORDS),
            max_records=read(config.EPOCH_MAX_RECORDS),
            target_ms=target_ms,
            min_interval_ms=millis(config.BUFFER_TIMEOUT) if _has_buffer_timeout(configuration) else wanted_ms,
            leave_after_ms=max(target_ms, checkpoints.aligned_timeout_ms) if unaligned else None,
        )


def _has_buffer_timeout(configuration: Configuration) -> bool:
    """Whether records wait for others at most the buffer timeout; else an epoch begins after its target time."""
    return configuration.get(config.BUFFER_TIMEOUT_ENABLED) and configuration.get_millis(config.BUFFER_TIMEOUT) >= 0


@dataclass(frozen=True)
class ExchangeSettings:
    """The payloads between tasks."""

    #: The most records in one payload between two tasks.
    chunk_records: int
    #: The size up to which an inbox or outbox stays in memory; beyond it, it spills to disk.
    memory_buffer_bytes: int


@dataclass(frozen=True)
class SlotTimeouts:
    """How long the driver waits for slots."""

    start_ms: int
    #: A task that has not ended this long after a cancellation is killed with its process; 0: never.
    cancellation_ms: int


@dataclass(frozen=True)
class CommitRetries:
    """Retries of commits at the end of the job and after a restore."""

    most_retries: int
    #: The pause before the first retry.
    delay_ms: int


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The settings of a job, as its driver and its slots read them.

    >>> settings = JobSettings.of(Configuration.from_dict({"execution.checkpointing.interval": "3 s"}))
    >>> settings.checkpoints.interval_ms, settings.exchange.chunk_records
    (3000, 4096)
    """

    #: Whether a number beyond the range of its declared type is wrapped; else it is refused.
    wrap_numbers: bool
    #: The job's own parameters, which functions find in their runtime context.
    global_job_parameters: Mapping[str, str] = field(repr=False)  # may hold secrets
    own_settings: Mapping[str, str] = field(repr=False)  # of the configuration, under keys of the program's own
    #: Whether mutable records are passed on without a copy.
    object_reuse: bool
    #: Whether elements and state of undeclared types may be pickled.
    pickle_allowed: bool
    #: Time between two calls of a periodic watermark generator; 0: it is never called.
    auto_watermark_interval_ms: int
    #: Whether the user set the interval: then watermarks come no sooner. Else they follow the records (I1).
    auto_watermark_by_clock: bool
    epochs: EpochLimits
    exchange: ExchangeSettings
    heartbeat: Heartbeat
    slot_timeouts: SlotTimeouts
    checkpoints: CheckpointPolicy
    state_backend: StateBackendSettings
    local_recovery: LocalRecoverySettings
    #: Whether the job may start without state in the checkpoint that belongs to none of its operators.
    allow_non_restored_state: bool
    #: Whether an older checkpoint may replace a damaged one although a sink commits (I16).
    allow_older_checkpoint: bool
    replay: ReplaySettings
    commits: CommitRetries

    @property
    def checkpointed(self) -> bool:
        """Whether the job makes periodic checkpoints, and one at the end of its input."""
        return self.checkpoints.enabled

    @property
    def keeps_local_copies(self) -> bool:
        """Whether slots keep copies of the last checkpoint's state files on their hosts."""
        return self.checkpointed and self.local_recovery.keeps

    @staticmethod
    def of(configuration: Configuration, *, batch: bool = False) -> JobSettings:
        """Read the settings from a configuration, with the defaults of `rekindle.config`."""
        read, millis = configuration.get, configuration.get_millis
        checkpoints = CheckpointPolicy.of(configuration, batch=batch)
        return JobSettings(
            wrap_numbers=read(config.OUT_OF_RANGE) == "wrap",
            global_job_parameters=ExecutionConfig(configuration).get_global_job_parameters(),
            own_settings=configuration.own_settings(),
            object_reuse=read(config.OBJECT_REUSE),
            pickle_allowed=read(config.STATE_PICKLE) == "allow" and read(config.GENERIC_TYPES),
            auto_watermark_interval_ms=millis(config.AUTO_WATERMARK_INTERVAL),
            auto_watermark_by_clock=configuration.contains(config.AUTO_WATERMARK_INTERVAL),
            epochs=EpochLimits.of(configuration, checkpoints),
            exchange=ExchangeSettings(read(config.EPOCH_CHUNK_RECORDS), read(config.SLOT_MEMORY_BUFFER)),
            heartbeat=Heartbeat(millis(config.HEARTBEAT_INTERVAL), millis(config.HEARTBEAT_TIMEOUT)),
            slot_timeouts=SlotTimeouts(millis(config.SLOT_START_TIMEOUT), millis(config.CANCELLATION_TIMEOUT)),
            checkpoints=checkpoints,
            state_backend=StateBackendSettings.of(configuration),
            local_recovery=LocalRecoverySettings.of(configuration),
            allow_non_restored_state=read(config.RECOVERY_IGNORE_UNCLAIMED),
            allow_older_checkpoint=read(config.RECOVERY_ALLOW_OLDER),
            replay=ReplaySettings.of(configuration),
            commits=CommitRetries(read(config.SINK_COMMITTER_RETRIES), millis(config.SINK_COMMITTER_RETRY_DELAY)),
        )
