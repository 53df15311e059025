"""Every setting with a meaning in Rekindle: its key, type, default and a sentence. Defaults stand nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from rekindle.config_parsers import (
    at_least,
    one_of,
    optional,
    parse_bool,
    parse_duration,
    parse_float,
    parse_list,
    parse_map,
    parse_permissions,
    parse_size,
    parse_string,
)

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A setting: its key, the parser of its value, its default, a description, and older keys for it."""

    key: str
    parse: Callable[[Any], T]
    default: T
    description: str = ""
    deprecated_keys: tuple[str, ...] = ()
    #: Whether the value is a secret: it is never shown, and may come from a file or the environment.
    secret: bool = False

    def read(self, raw: Any) -> T:
        """Parse a raw value; ValueError gives the reason when it cannot be used."""
        return self.parse(raw)


# -- the options ------------------------------------------------------------------------------------------------------

#: Every option by key and by deprecated key.
OPTIONS: dict[str, ConfigOption[Any]] = {}
#: Keys with these prefixes are accepted too; the user chooses the rest of the key.
PREFIX_OPTIONS: dict[str, str] = {
    "rekindle.spark.conf.": "Passed to the Spark session that Rekindle creates, without the prefix.",
    "pipeline.global-job-parameters.": "One of the job's own parameters.",
    "rekindle.store.s3.": "A setting of obstore for s3:// stores that has no key of its own, by obstore's name for it.",
    "rekindle.store.gs.": "A setting of obstore for gs:// stores, by obstore's name for it.",
    "metrics.reporter.": "A setting of a reporter of metrics: <name>.factory.class, <name>.port and others.",
    "traces.reporter.": "A setting of a reporter of spans: <name>.factory.class, <name>.exporter.endpoint and others.",
}
#: Prefixes of object store settings that have no key of their own.
S3_STORE_PREFIX, GS_STORE_PREFIX = "rekindle.store.s3.", "rekindle.store.gs."


def _option(
    key: str, parse: Callable[[Any], T], default: T, description: str, *deprecated_keys: str, secret: bool = False
) -> ConfigOption[T]:
    option = ConfigOption(key, parse, default, description, deprecated_keys, secret)
    for name in (key, *deprecated_keys):
        assert name not in OPTIONS, name
        OPTIONS[name] = option
    return option


# Job and parallelism
PARALLELISM = _option(
    "parallelism.default", at_least(-1), -1, "Parallelism of operators that set none; -1: as many as Spark has cores."
)
MAX_PARALLELISM = _option(
    "pipeline.max-parallelism", at_least(-1), -1, "Number of key groups, the limit of rescaling; -1: by parallelism."
)
JOB_NAME = _option("pipeline.name", optional(parse_string), None, "The job's name, where `execute` is given none.")
AUTO_WATERMARK_INTERVAL = _option(
    "pipeline.auto-watermark-interval",
    parse_duration,
    timedelta(milliseconds=200),
    "Interval of periodic watermarks; 0: none are emitted. Unset, watermarks follow the records, and generators are "
    "also called every 200 ms while no records come.",
)
OPERATOR_CHAINING = _option(
    "pipeline.operator-chaining.enabled",
    parse_bool,
    True,
    "Whether operators that need no exchange between them run in one task.",
    "pipeline.operator-chaining",
)
CHAIN_DIFFERENT_MAX_PARALLELISM = _option(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    parse_bool,
    True,
    "Whether operators with different numbers of key groups may share a task.",
)
GLOBAL_JOB_PARAMETERS = _option(
    "pipeline.global-job-parameters",
    optional(parse_map),
    None,
    "The job's own parameters, which functions find in their runtime context.",
)
OBJECT_REUSE = _option(
    "pipeline.object-reuse",
    parse_bool,
    False,
    "Whether mutable records are passed on without a copy; otherwise they are copied when they leave a function.",
)
RUNTIME_MODE = _option(
    "execution.runtime-mode",
    one_of("STREAMING", "BATCH", "AUTOMATIC"),
    "STREAMING",
    "BATCH takes bounded input only and emits final results; AUTOMATIC selects BATCH when every source is bounded.",
)
BUFFER_TIMEOUT = _option(
    "execution.buffer-timeout.interval",
    parse_duration,
    timedelta(milliseconds=100),
    "Minimum time between the starts of two epochs: a longer time costs latency and saves work.",
    "execution.buffer-timeout",
)
BUFFER_TIMEOUT_ENABLED = _option(
    "execution.buffer-timeout.enabled",
    parse_bool,
    True,
    "Whether the buffer timeout applies; otherwise epochs start at least their target duration apart.",
)

# Checkpoints
CHECKPOINT_INTERVAL = _option(
    "execution.checkpointing.interval",
    optional(parse_duration),
    None,
    "Time between the starts of two checkpoints; unset: no checkpoints.",
)
CHECKPOINT_MODE = _option(
    "execution.checkpointing.mode",
    one_of("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    "EXACTLY_ONCE",
    "Both give exactly once here, because every checkpoint is a consistent cut.",
)
CHECKPOINT_TIMEOUT = _option(
    "execution.checkpointing.timeout",
    parse_duration,
    timedelta(minutes=10),
    "Checkpoints that take longer are aborted.",
)
CHECKPOINT_MIN_PAUSE = _option(
    "execution.checkpointing.min-pause",
    parse_duration,
    timedelta(0),
    "Minimum time between the end of a checkpoint and the start of the next.",
)
CHECKPOINT_MAX_CONCURRENT = _option(
    "execution.checkpointing.max-concurrent-checkpoints", at_least(1), 1, "The most checkpoints under way at a time."
)
CHECKPOINT_TOLERABLE_FAILURES = _option(
    "execution.checkpointing.tolerable-failed-checkpoints",
    at_least(0),
    0,
    "The number of checkpoints in a row that may fail before the job fails.",
)
CHECKPOINT_RETENTION = _option(
    "execution.checkpointing.externalized-checkpoint-retention",
    one_of("RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"),
    "NO_EXTERNALIZED_CHECKPOINTS",
    "Whether a cancelled job keeps its checkpoints; a failed job always keeps them.",
)
CHECKPOINT_DIRECTORY = _option(
    "execution.checkpointing.dir",
    optional(parse_string),
    None,
    "The directory of checkpoints; the driver and every executor must reach it.",
    "state.checkpoints.dir",
    "state.backend.fs.checkpointdir",
)
CHECKPOINT_FILE_PERMISSIONS = _option(
    "rekindle.checkpointing.file-permissions",
    parse_permissions,
    0o600,
    "Permissions, in octal digits, of checkpoint and savepoint files in a directory; folders get matching ones. The "
    "umask of each process still applies.",
)
SAVEPOINT_DIRECTORY = _option(
    "execution.checkpointing.savepoint-dir",
    optional(parse_string),
    None,
    "The directory of savepoints that are triggered without one.",
    "state.savepoints.dir",
    "savepoints.state.backend.fs.dir",
)
S3_ENDPOINT = _option(
    "s3.endpoint",
    optional(parse_string),
    None,
    "The address of an S3-compatible server; unset: Amazon's.",
    "fs.s3a.endpoint",
)
S3_REGION = _option(
    "s3.endpoint.region",
    optional(parse_string),
    None,
    "The region of the bucket; unset: the region that the environment of each process gives.",
    "s3.region",
    "fs.s3a.endpoint.region",
)
S3_ACCESS_KEY = _option(
    "s3.access-key",
    optional(parse_string),
    None,
    "The access key for S3; unset: the environment of each process gives it (variables, instance profile).",
    "s3.access.key",
    "fs.s3a.access.key",
    secret=True,
)
S3_SECRET_KEY = _option(
    "s3.secret-key",
    optional(parse_string),
    None,
    "The secret key for S3; it is never shown.",
    "s3.secret.key",
    "fs.s3a.secret.key",
    secret=True,
)
S3_SESSION_TOKEN = _option(
    "s3.session.token",
    optional(parse_string),
    None,
    "The token of temporary keys for S3; it is never shown.",
    "fs.s3a.session.token",
    secret=True,
)
S3_PATH_STYLE = _option(
    "s3.path.style.access",
    optional(parse_bool),
    None,
    "Whether the bucket is part of the path of an S3 address, not of its host name; self-hosted servers need that.",
    "s3.path-style-access",
    "fs.s3a.path.style.access",
)
CHECKPOINT_NUM_RETAINED = _option(
    "execution.checkpointing.num-retained",
    at_least(1),
    1,
    "The number of completed checkpoints that are kept.",
    "state.checkpoints.num-retained",
)
SINK_COMMITTER_RETRIES = _option(
    "sink.committer.retries",
    at_least(0),
    10,
    "How often a sink's commit is retried, at the end of the job or after a restore, before the job fails.",
)
SINK_COMMITTER_RETRY_DELAY = _option(
    "rekindle.sink.committer.retry-delay",
    parse_duration,
    timedelta(milliseconds=100),
    "The pause before the first retry of a sink's commit; it doubles with each retry, up to 5 s.",
)
CHECKPOINT_MAX_MEMORY = _option(
    "rekindle.checkpointing.max-memory-state-size",
    parse_size,
    5 * 1024 * 1024,
    "The largest state of one subtask in a checkpoint in the driver's memory; larger state fails the checkpoint.",
)
CHECKPOINT_INCREMENTAL = _option(
    "execution.checkpointing.incremental",
    parse_bool,
    True,
    "Whether a checkpoint writes only the state that changed since an earlier one; otherwise it writes all state.",
    "state.backend.incremental",
)
UNALIGNED_ENABLED = _option(
    "execution.checkpointing.unaligned.enabled",
    parse_bool,
    False,
    "Whether a checkpoint takes in the records that still wait in front of a slow task when the epoch's time is over.",
    "execution.checkpointing.unaligned",
)
ALIGNED_TIMEOUT = _option(
    "execution.checkpointing.aligned-checkpoint-timeout",
    parse_duration,
    timedelta(0),
    "With unaligned checkpoints: how long an epoch works on the records that it let in, at least its target duration; "
    "records that still wait after that go into the checkpoint.",
    "execution.checkpointing.alignment-timeout",
)
RECOVERY_PATH = _option(
    "execution.state-recovery.path",
    optional(parse_string),
    None,
    "The checkpoint or savepoint from which the job starts; latest: the newest one of the job of this name.",
    "execution.savepoint.path",
)
RECOVERY_IGNORE_UNCLAIMED = _option(
    "execution.state-recovery.ignore-unclaimed-state",
    parse_bool,
    False,
    "Whether the job may start without state in the checkpoint that belongs to none of its operators.",
    "execution.savepoint.ignore-unclaimed-state",
)
RECOVERY_ALLOW_OLDER = _option(
    "rekindle.state-recovery.allow-older-checkpoint",
    parse_bool,
    False,
    "Whether a job with a committing sink may start from an older checkpoint when the newest one is damaged; output "
    "that was committed since then is committed again.",
)
LOCAL_RECOVERY = _option(
    "execution.state-recovery.from-local",
    parse_bool,
    False,
    "Whether a slot that starts again on a host reads its state from the copies there; what is missing or damaged is "
    "read from the store.",
    "state.backend.local-recovery",
)
LOCAL_BACKUP = _option(
    "execution.checkpointing.local-backup.enabled",
    optional(parse_bool),
    None,
    "Whether slots keep copies of the state files of the last completed checkpoint on their hosts; as "
    "`execution.state-recovery.from-local` if it is not set.",
)
LOCAL_BACKUP_DIRECTORIES = _option(
    "execution.checkpointing.local-backup.dirs",
    optional(parse_list),
    None,
    "Directories on the slots' hosts for local copies of state; without any, those of `io.tmp.dirs`.",
    "taskmanager.state.local.root-dirs",
)
TEMPORARY_DIRECTORIES = _option(
    "io.tmp.dirs",
    optional(parse_list),
    None,
    "Directories on the slots' hosts for local copies of state and for RocksDB's files, where these have no setting "
    "of their own; without any, the hosts' temporary directories.",
    "taskmanager.tmp.dirs",
)
STATE_BACKEND = _option(
    "state.backend.type",
    one_of("hashmap", "rocksdb", filesystem="hashmap", jobmanager="hashmap"),
    "hashmap",
    "Where keyed state lives while the job runs: in the memory of the slots (`hashmap`) or on their disks (`rocksdb`).",
    "state.backend",
)
MANAGED_MEMORY = _option(
    "taskmanager.memory.managed.size",
    parse_size,
    512 * 1024 * 1024,
    "With `rocksdb`: the memory of each slot for keyed state, that is decoded rows, RocksDB's caches and buffers, and "
    "changes that wait for the next checkpoint.",
)
ROCKSDB_LOCAL_DIRECTORIES = _option(
    "state.backend.rocksdb.localdir",
    optional(parse_list),
    None,
    "With `rocksdb`: directories on the slots' hosts for its files, one of them for each slot; without any, those of "
    "`io.tmp.dirs`, or the slot's own temporary directory.",
)
STATE_PICKLE = _option(
    "state.pickle",
    one_of("allow", "refuse"),
    "allow",
    "Whether elements and state of undeclared types may be pickled; `refuse` fails the job when it is built.",
)

# Restart
_RESTART_SYNONYMS = {"off": "none", "disable": "none"} | {
    name.replace("-", ""): name for name in ("fixed-delay", "failure-rate", "exponential-delay")
}
RESTART_STRATEGY = _option(
    "restart-strategy.type",
    optional(one_of("none", "fixed-delay", "failure-rate", "exponential-delay", **_RESTART_SYNONYMS)),
    None,
    "How the job restarts after a failure; unset: exponential-delay with checkpoints, none without.",
    "restart-strategy",
)
FIXED_DELAY_ATTEMPTS = _option(
    "restart-strategy.fixed-delay.attempts", at_least(0), 1, "The number of restarts before the job fails."
)
FIXED_DELAY = _option(
    "restart-strategy.fixed-delay.delay", parse_duration, timedelta(seconds=1), "Time from a failure to its restart."
)
FAILURE_RATE_MAX_FAILURES = _option(
    "restart-strategy.failure-rate.max-failures-per-interval", at_least(1), 1, "The most failures within the interval."
)
FAILURE_RATE_INTERVAL = _option(
    "restart-strategy.failure-rate.failure-rate-interval",
    parse_duration,
    timedelta(minutes=1),
    "The interval over which failures are counted.",
)
FAILURE_RATE_DELAY = _option(
    "restart-strategy.failure-rate.delay", parse_duration, timedelta(seconds=1), "Time from a failure to its restart."
)
EXPONENTIAL_INITIAL_BACKOFF = _option(
    "restart-strategy.exponential-delay.initial-backoff",
    parse_duration,
    timedelta(seconds=1),
    "Time between the first failure and its restart.",
)
EXPONENTIAL_MAX_BACKOFF = _option(
    "restart-strategy.exponential-delay.max-backoff",
    parse_duration,
    timedelta(minutes=1),
    "The longest time between a failure and its restart.",
)
EXPONENTIAL_MULTIPLIER = _option(
    "restart-strategy.exponential-delay.backoff-multiplier", parse_float, 1.5, "Growth factor of the time per failure."
)
EXPONENTIAL_RESET_THRESHOLD = _option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    parse_duration,
    timedelta(hours=1),
    "After this time without a failure the backoff starts again at its initial value.",
)
EXPONENTIAL_JITTER = _option(
    "restart-strategy.exponential-delay.jitter-factor",
    parse_float,
    0.1,
    "The random part of the backoff, so that jobs do not restart in step.",
)
EXPONENTIAL_ATTEMPTS = _option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    at_least(1),
    2**31 - 1,
    "The number of restarts without a reset before the job fails.",
)

# Slots
HEARTBEAT_INTERVAL = _option(
    "heartbeat.interval", parse_duration, timedelta(seconds=10), "Time between two heartbeats of driver and slots."
)
HEARTBEAT_TIMEOUT = _option(
    "heartbeat.timeout", parse_duration, timedelta(seconds=50), "A driver or slot that is silent for longer is lost."
)
CANCELLATION_TIMEOUT = _option(
    "task.cancellation.timeout",
    parse_duration,
    timedelta(minutes=3),
    "A task that has not ended this long after a cancellation is killed with its process; 0: never.",
)
GENERIC_TYPES = _option(
    "pipeline.generic-types",
    parse_bool,
    True,
    "Whether elements and state of undeclared types may be pickled; `false` is `state.pickle: refuse`.",
)
PYTHON_FILES = _option("python.files", optional(parse_list), None, "Files and folders that every slot can import from.")
PYTHON_ARCHIVES = _option(
    "python.archives",
    optional(parse_list),
    None,
    "Archives that are unpacked in the functions' working directory: `path` or `path#target`.",
)
PYTHON_REQUIREMENTS = _option(
    "python.requirements",
    optional(parse_string),
    None,
    "A requirements file of pip whose packages the job gets: `file`, or `file#directory of packages`.",
)
PYTHON_EXECUTABLE = _option(
    "python.executable", optional(parse_string), None, "The interpreter of slots and Spark tasks; unset: this one."
)
JAVA_HOME = _option(
    "env.java.home", optional(parse_string), None, "The Java for the Spark session that Rekindle creates."
)

# Rekindle's own
LOCAL_TIME_ZONE = _option(
    "table.local-time-zone",
    optional(parse_string),
    None,
    "The time zone of a table's timestamps with a local time zone; unset: that of the Spark session.",
)
OUT_OF_RANGE = _option(
    "rekindle.types.out-of-range",
    one_of("refuse", "wrap"),
    "refuse",
    "What becomes of a number beyond the range of its declared type BYTE, SHORT, INT or FLOAT: refuse fails the job "
    "with the record, wrap does what PyFlink does.",
)
MASTER = _option(
    "rekindle.master",
    optional(parse_string),
    None,
    "The Spark master (local[*], spark://host:port, yarn, k8s://...); unset: the active session's, else local[*].",
    "master",
)
EPOCH_MAX_RECORDS = _option(
    "rekindle.epoch.max-records", at_least(1), 4_000_000, "The most records that the sources emit in one epoch."
)
EPOCH_INITIAL_RECORDS = _option(
    "rekindle.epoch.initial-records",
    at_least(1),
    1,
    "The most records of a source subtask in the first epoch. Later limits grow and shrink with the measured cost of "
    "records, so that epochs take their target duration.",
)
EPOCH_TARGET_DURATION = _option(
    "rekindle.epoch.target-duration",
    parse_duration,
    timedelta(seconds=1),
    "Duration of an epoch under load; at most half the checkpoint interval.",
)
EPOCH_CHUNK_RECORDS = _option(
    "rekindle.epoch.chunk-records", at_least(1), 4096, "The most records in one payload between two tasks."
)
SLOT_MEMORY_BUFFER = _option(
    "rekindle.slot.memory-buffer",
    parse_size,
    64 * 1024 * 1024,
    "How much a slot's inbox and outbox hold in memory before they spill to disk.",
)
SLOT_REQUEST_TIMEOUT = _option(
    "slot.request.timeout",
    parse_duration,
    timedelta(minutes=5),
    "How long Spark may take to find executors for the slots of a job and to start the slots there.",
)
SLOT_START_TIMEOUT = _option(
    "rekindle.slot.start-timeout",
    parse_duration,
    timedelta(seconds=60),
    "How long the driver waits for started slots to connect to it.",
)
JAVA_STACK = _option("rekindle.errors.java-stack", parse_bool, False, "Whether errors show Spark's Java stack as well.")
PROGRESS = _option(
    "rekindle.progress",
    one_of("auto", "plain", "live", "off"),
    "auto",
    "How progress is shown: a live line on a terminal, plain lines elsewhere, or not at all.",
)
SIGTERM_ACTION = _option(
    "rekindle.sigterm.action",
    one_of("cancel", "savepoint"),
    "cancel",
    "Whether SIGTERM cancels running jobs or stops them with a savepoint; their checkpoints stay either way.",
)
SIGTERM_GRACE = _option(
    "rekindle.sigterm.grace-period",
    parse_duration,
    timedelta(seconds=25),
    "How long a savepoint or a cancellation after SIGTERM may take; after a savepoint's time the job is cancelled. "
    "Kubernetes kills after 30 s.",
)
HISTORY_ENABLED = _option(
    "rekindle.history.enabled",
    parse_bool,
    True,
    "Whether statistics, failures and the plan are kept beside the checkpoints, for `rekindle history`.",
)
HISTORY_RUNS = _option(
    "rekindle.history.runs", at_least(1), 20, "The number of runs whose history is kept; older ones are deleted."
)
REPLAY_RECORD_INPUT = _option(
    "rekindle.replay.record-input",
    parse_bool,
    False,
    "Whether each subtask keeps its input since the last checkpoint, which is written when it fails, for `rekindle "
    "replay`.",
)
REPLAY_MAX_BYTES = _option(
    "rekindle.replay.max-bytes",
    parse_size,
    32 * 1024 * 1024,
    "The most input that a subtask keeps for a replay; with more than that since the last checkpoint, none is kept.",
)
REPLAY_FAILURES = _option(
    "rekindle.replay.failures",
    at_least(1),
    3,
    "The number of failures whose recorded input is kept, the newest ones, with the checkpoints they stand on.",
)
REPLAY_KEEP_CODE = _option(
    "rekindle.replay.keep-code",
    parse_bool,
    False,
    "Whether the job's code is kept beside its recorded input, for `rekindle replay --shipped`. It is pickled with all "
    "that functions and connectors hold, passwords included.",
)
EXCEPTION_HISTORY = _option(
    "web.exception-history-size", at_least(1), 16, "The number of a job's failures that are kept, the newest ones."
)
CHECKPOINT_HISTORY = _option(
    "web.checkpoints.history",
    at_least(1),
    10,
    "The number of checkpoints that keep all their details, the newest ones.",
)
REST_ENABLED = _option(
    "rekindle.rest.enabled",
    one_of("auto", "true", "false"),
    "auto",
    "Whether the driver serves the REST API and its page; auto: if the extra `web` is installed.",
)
REST_PORT = _option(
    "rest.port", at_least(0), 8081, "The port of the REST API; unset, the next free one from 8081 on; 0: any free one."
)
REST_BIND_PORT = _option(
    "rest.bind-port",
    optional(parse_string),
    None,
    "The ports, of which the REST API takes the first free one: a list with ranges (8081,8090-8099); unset: the port.",
)
REST_ADDRESS = _option(
    "rest.address",
    optional(parse_string),
    None,
    "The address at which others reach the REST API, as it is printed; unset: the one that it listens on.",
)
REST_BIND_ADDRESS = _option(
    "rest.bind-address",
    parse_string,
    "127.0.0.1",
    "The address on which the REST API and the metrics listen; on any but loopback a token is required.",
)
REST_TOKEN = _option(
    "rekindle.rest.token",
    optional(parse_string),
    None,
    "The token without which nothing but probes is answered; auto: a new one; unset: none on loopback, elsewhere a new "
    "one.",
    secret=True,
)
REST_READY_CHECKPOINT_AGE = _option(
    "rekindle.rest.ready.max-checkpoint-age",
    optional(parse_duration),
    None,
    "How old the last completed checkpoint of a job may be for `/ready` to say that it is; unset: any age.",
)
REST_DIRECTORIES = _option(
    "rekindle.rest.directories",
    optional(parse_list),
    None,
    "Directories into which a request may write savepoints, beside those of the job's checkpoints and savepoints.",
)
REST_STORE_DURATION = _option(
    "rest.async.store-duration",
    parse_duration,
    timedelta(minutes=5),
    "How long the outcome of a savepoint or checkpoint can be asked for by its request's id.",
)
WEB_REFRESH_INTERVAL = _option(
    "web.refresh-interval", parse_duration, timedelta(seconds=3), "How often a page asks for news."
)
WEB_CANCEL = _option(
    "web.cancel.enable", parse_bool, True, "Whether requests may stop and cancel jobs; savepoints are always allowed."
)
METRIC_REPORTERS = _option(
    "metrics.reporters",
    optional(parse_list),
    None,
    "The names of the reporters of metrics that are used; unset: all that have settings.",
)
TRACE_REPORTERS = _option(
    "traces.reporters",
    optional(parse_list),
    None,
    "The names of the reporters of spans that are used; unset: all that have settings.",
)
DRIVER_HOST = _option(
    "rekindle.driver.host",
    parse_string,
    "127.0.0.1",
    "The address at which slots reach the driver: loopback on one machine, on a cluster one that all hosts reach.",
)
SPARK_SECRET_FILE = _option(
    "rekindle.spark.authenticate.secret-file",
    optional(parse_string),
    None,
    "A file, readable by its owner only, with the spark.authenticate.secret of the Spark cluster.",
)
TLS_CERTIFICATE = _option(
    "rekindle.tls.certificate",
    optional(parse_string),
    None,
    "The certificate (PEM) of each host: driver, slots and pumps encrypt their TCP connections with it.",
)
TLS_KEY = _option(
    "rekindle.tls.key", optional(parse_string), None, "The private key (PEM) of that certificate, without a password."
)
TLS_AUTHORITY = _option(
    "rekindle.tls.authority",
    optional(parse_string),
    None,
    "The certificate (PEM) of the authority that signed every host's certificate; no other authority is accepted.",
)
