"""The settings that travel with the plan, as one frozen, typed value. Their defaults are in `rekindle.config` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.execution_config import ExecutionConfig
from rekindle.datastream.checkpoint_config import CheckpointConfig
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.errors import ConfigurationError


@dataclass(frozen=True)
class StateBackendSettings:
    """Where keyed state lives while the job runs."""

    name: str = "hashmap"
    #: The memory of a slot for keyed state that is on disk: decoded rows, RocksDB's caches and buffers.
    managed_bytes: int = 512 << 20
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
    restores: bool = False
    #: Whether slots keep copies.
    keeps: bool = False
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

    records_input: bool = False
    #: The most bytes that a subtask keeps.
    max_bytes: int = 32 << 20
    #: How many failures have their input kept.
    failures: int = 3
    #: Whether the job's code is kept beside it.
    keeps_code: bool = False

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


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The settings of a job, as its driver and its slots read them.

    >>> settings = JobSettings.of(Configuration.from_dict({"execution.checkpointing.interval": "3 s"}))
    >>> settings.checkpoint_interval_ms, settings.chunk_records
    (3000, 4096)
    """

    # -- functions and records ----------------------------------------------------------------------------------------
    #: The job's own parameters, which functions find in their runtime context.
    wrap_numbers: bool  # whether a number beyond the range of its declared type is wrapped; else it is refused
    global_job_parameters: Mapping[str, str] = field(repr=False)  # may hold secrets
    own_settings: Mapping[str, str] = field(repr=False)  # of the configuration, under keys of the program's own
    #: Whether mutable records are passed on without a copy.
    object_reuse: bool
    #: Whether elements and state of undeclared types may be pickled.
    pickle_allowed: bool

    # -- event time ---------------------------------------------------------------------------------------------------
    #: Time between two calls of a periodic watermark generator; 0: it is never called.
    auto_watermark_interval_ms: int
    #: Whether the user set the interval: then watermarks come no sooner. Else they follow the records (I1).
    auto_watermark_by_clock: bool

    # -- epochs and exchanges -----------------------------------------------------------------------------------------
    #: The most records in one payload between two tasks.
    chunk_records: int
    #: The size up to which an inbox or outbox stays in memory; beyond it, it spills to disk.
    memory_buffer_bytes: int
    #: The minimum time between the starts of two epochs; -1: their target time.
    buffer_timeout_ms: int
    epoch_initial_records: int
    epoch_max_records: int
    #: Duration of an epoch under load.
    epoch_target_ms: int

    # -- slots --------------------------------------------------------------------------------------------------------
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    #: A task that has not ended this long after a cancellation is killed with its process; 0: never.
    cancellation_timeout_ms: int
    #: How long the driver waits for its slots.
    slot_start_timeout_ms: int

    # -- checkpoints --------------------------------------------------------------------------------------------------
    #: -1 without checkpoints, and always in batch mode.
    checkpoint_interval_ms: int
    #: Whether checkpoints take in the records that wait in front of a slow task.
    unaligned_checkpoints: bool
    #: How long an epoch works on its records before it leaves the rest waiting, if longer than its target time.
    aligned_timeout_ms: int
    checkpoint_timeout_ms: int
    checkpoint_min_pause_ms: int
    checkpoint_max_concurrent: int
    checkpoint_tolerable_failures: int
    checkpoint_num_retained: int
    checkpoint_retention: ExternalizedCheckpointRetention
    checkpoint_directory: str | None
    #: Whether a checkpoint writes only the state that changed since an earlier one.
    checkpoint_incremental: bool
    #: How many checkpoints have their statistics kept.
    checkpoint_statistics_retained: int
    #: The largest state of one subtask in a checkpoint in the driver's memory.
    checkpoint_max_memory_bytes: int
    savepoint_directory: str | None
    state_backend: StateBackendSettings

    # -- recovery -----------------------------------------------------------------------------------------------------
    local_recovery: LocalRecoverySettings
    #: Whether the job may start without state in the checkpoint that belongs to none of its operators.
    allow_non_restored_state: bool
    #: Whether an older checkpoint may replace a damaged one although a sink commits (I16).
    allow_older_checkpoint: bool
    #: Whether each start of the job continues from its latest checkpoint.
    resumes_latest: bool
    #: The input that is kept to replay a failure.
    replay: ReplaySettings

    # -- commits at the end of the job and after a restore ------------------------------------------------------------
    commit_retries: int
    #: The pause before the first retry of a commit.
    commit_retry_delay_ms: int

    @property
    def checkpointed(self) -> bool:
        """Whether the job makes periodic checkpoints, and one at the end of its input."""
        return self.checkpoint_interval_ms > 0

    @property
    def incomplete_checkpoints(self) -> int:
        """How many checkpoints may be incomplete at a time: those under way, and those that may fail in a row."""
        return self.checkpoint_max_concurrent + self.checkpoint_tolerable_failures

    @property
    def keeps_local_copies(self) -> bool:
        """Whether slots keep copies of the last checkpoint's state files on their hosts."""
        return self.checkpointed and self.local_recovery.keeps

    @staticmethod
    def of(configuration: Configuration, *, batch: bool = False) -> JobSettings:
        """Read the settings from a configuration, with the defaults of `rekindle.config`."""
        read, millis = configuration.get, configuration.get_millis
        checkpoints = CheckpointConfig(configuration)
        return JobSettings(
            wrap_numbers=configuration.get(config.OUT_OF_RANGE) == "wrap",
            global_job_parameters=ExecutionConfig(configuration).get_global_job_parameters(),
            own_settings=configuration.own_settings(),
            object_reuse=read(config.OBJECT_REUSE),
            pickle_allowed=read(config.STATE_PICKLE) == "allow" and read(config.GENERIC_TYPES),
            auto_watermark_interval_ms=millis(config.AUTO_WATERMARK_INTERVAL),
            auto_watermark_by_clock=configuration.contains(config.AUTO_WATERMARK_INTERVAL),
            chunk_records=read(config.EPOCH_CHUNK_RECORDS),
            memory_buffer_bytes=read(config.SLOT_MEMORY_BUFFER),
            buffer_timeout_ms=millis(config.BUFFER_TIMEOUT) if read(config.BUFFER_TIMEOUT_ENABLED) else -1,
            epoch_initial_records=read(config.EPOCH_INITIAL_RECORDS),
            epoch_max_records=read(config.EPOCH_MAX_RECORDS),
            epoch_target_ms=millis(config.EPOCH_TARGET_DURATION),
            heartbeat_interval_ms=millis(config.HEARTBEAT_INTERVAL),
            heartbeat_timeout_ms=millis(config.HEARTBEAT_TIMEOUT),
            cancellation_timeout_ms=millis(config.CANCELLATION_TIMEOUT),
            slot_start_timeout_ms=millis(config.SLOT_START_TIMEOUT),
            checkpoint_interval_ms=-1 if batch else checkpoints.get_checkpoint_interval(),
            unaligned_checkpoints=not batch and checkpoints.is_unaligned_checkpoints_enabled(),
            aligned_timeout_ms=millis(config.ALIGNED_TIMEOUT),
            checkpoint_timeout_ms=checkpoints.get_checkpoint_timeout(),
            checkpoint_min_pause_ms=checkpoints.get_min_pause_between_checkpoints(),
            checkpoint_max_concurrent=checkpoints.get_max_concurrent_checkpoints(),
            checkpoint_tolerable_failures=checkpoints.get_tolerable_checkpoint_failure_number(),
            checkpoint_num_retained=read(config.CHECKPOINT_NUM_RETAINED),
            checkpoint_retention=checkpoints.get_externalized_checkpoint_retention(),
            checkpoint_directory=read(config.CHECKPOINT_DIRECTORY),
            checkpoint_incremental=read(config.CHECKPOINT_INCREMENTAL),
            checkpoint_statistics_retained=read(config.CHECKPOINT_HISTORY),
            checkpoint_max_memory_bytes=read(config.CHECKPOINT_MAX_MEMORY),
            savepoint_directory=read(config.SAVEPOINT_DIRECTORY),
            state_backend=StateBackendSettings.of(configuration),
            local_recovery=LocalRecoverySettings.of(configuration),
            allow_non_restored_state=read(config.RECOVERY_IGNORE_UNCLAIMED),
            allow_older_checkpoint=read(config.RECOVERY_ALLOW_OLDER),
            resumes_latest=read(config.RECOVERY_PATH) == "latest",
            replay=ReplaySettings.of(configuration),
            commit_retries=read(config.SINK_COMMITTER_RETRIES),
            commit_retry_delay_ms=millis(config.SINK_COMMITTER_RETRY_DELAY),
        )
