"""Every setting that has a meaning here, each with its type, its default and a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A setting: its key, how its value is read, what it is when nobody sets it, and what it does."""

    key: str
    parse: Callable[[Any], T]
    default: T
    description: str = ""
    deprecated_keys: tuple[str, ...] = ()

    def read(self, raw: Any) -> T:
        """The value for what was set; ValueError says what is wrong with it."""
        return self.parse(raw)


# -- how values are read ----------------------------------------------------------------------------------------------

_UNITS_MS: dict[str, float] = {
    unit: factor
    for units, factor in (
        ("ns nano nanos nanosecond nanoseconds", 1e-6),
        ("us µs micro micros microsecond microseconds", 1e-3),
        ("ms milli millis millisecond milliseconds", 1.0),
        ("s sec secs second seconds", 1_000.0),
        ("m min mins minute minutes", 60_000.0),
        ("h hour hours", 3_600_000.0),
        ("d day days", 86_400_000.0),
    )
    for unit in units.split()
}
_UNITS_BYTES = {
    unit: 1024**power
    for power, units in enumerate(
        ("b byte bytes", "k kb kibibytes", "m mb mebibytes", "g gb gibibytes", "t tb tebibytes")
    )
    for unit in units.split()
}
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)")
_ISO_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def parse_string(raw: Any) -> str:
    """Any value as text."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    return raw if isinstance(raw, str) else str(raw)


def parse_bool(raw: Any) -> bool:
    """true or false.

    >>> parse_bool("True")
    True
    """
    if isinstance(raw, bool):
        return raw
    text = str(raw).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"{raw!r} is neither true nor false")
    return text == "true"


def parse_int(raw: Any) -> int:
    """A whole number."""
    if isinstance(raw, bool) or (isinstance(raw, float) and not raw.is_integer()):
        raise ValueError(f"{raw!r} is not a whole number")
    try:
        return int(raw)
    except (TypeError, ValueError):
        raise ValueError(f"{raw!r} is not a whole number") from None


def parse_float(raw: Any) -> float:
    """A number."""
    try:
        return float(raw)
    except (TypeError, ValueError):
        raise ValueError(f"{raw!r} is not a number") from None


def parse_duration(raw: Any) -> timedelta:
    """An amount of time in Flink's spelling; a bare number is milliseconds.

    >>> parse_duration("10 s"), parse_duration("500ms"), parse_duration("PT1M30S")
    (datetime.timedelta(seconds=10), datetime.timedelta(microseconds=500000), datetime.timedelta(seconds=90))
    """
    if isinstance(raw, timedelta):
        return raw
    text = str(raw).strip()
    iso = _ISO_DURATION.fullmatch(text.upper())
    if iso and any(iso.groups()):
        return timedelta(**{unit: float(amount) for unit, amount in iso.groupdict().items() if amount})
    found = _NUMBER_AND_UNIT.fullmatch(text.lower())
    if not found or (found.group(2) or "ms") not in _UNITS_MS:
        raise ValueError(f"{raw!r} is no amount of time, such as '500 ms', '10 s', '1 min' or '2 h'")
    return timedelta(milliseconds=float(found.group(1)) * _UNITS_MS[found.group(2) or "ms"])


def parse_size(raw: Any) -> int:
    """An amount of memory in bytes, in Flink's spelling; a bare number is bytes.

    >>> parse_size("64mb")
    67108864
    """
    found = _NUMBER_AND_UNIT.fullmatch(str(raw).strip().lower())
    if not found or (found.group(2) or "b") not in _UNITS_BYTES:
        raise ValueError(f"{raw!r} is no amount of memory, such as '512kb', '64mb' or '1gb'")
    return int(float(found.group(1)) * _UNITS_BYTES[found.group(2) or "b"])


def parse_list(raw: Any) -> list[str]:
    """Flink's list spellings: `a;b`, `a,b` or `[a, b]`.

    >>> parse_list("a;b"), parse_list("[a, b]"), parse_list(["a"])
    (['a', 'b'], ['a', 'b'], ['a'])
    """
    if isinstance(raw, list | tuple):
        return [str(item) for item in raw]
    text = str(raw).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    elif text.startswith("- "):
        text = ",".join(line.strip().removeprefix("- ") for line in text.splitlines())
    items = re.split(r"[;,]", text) if not re.search(r";", text) else text.split(";")
    return [item.strip().strip("'\"") for item in items if item.strip()]


def parse_map(raw: Any) -> dict[str, str]:
    """Flink's map spellings: `a:1,b:2` or `{a: 1, b: 2}`.

    >>> parse_map("a:1,b:x:y")
    {'a': '1', 'b': 'x:y'}
    """
    if isinstance(raw, Mapping):
        return {str(key): parse_string(value) for key, value in raw.items()}
    text = str(raw).strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    pairs = [pair.partition(":") for pair in text.split(",") if pair.strip()]
    if any(not colon for _, colon, _ in pairs):
        raise ValueError(f"{raw!r} is no map, such as 'a:1,b:2'")
    return {key.strip(): value.strip().strip("'\"") for key, _, value in pairs}


def one_of(*choices: str, **synonyms: str) -> Callable[[Any], str]:
    """A reader for values of which only some words are allowed; `synonyms` are other spellings of them.

    >>> one_of("fixed-delay", fixeddelay="fixed-delay")("FixedDelay")
    'fixed-delay'
    """

    def parse(raw: Any) -> str:
        text = parse_string(raw).strip()
        known = {choice.lower().replace("_", "-"): choice for choice in choices} | synonyms
        found = known.get(text.lower().replace("_", "-"))
        if found is None:
            raise ValueError(f"{raw!r} is none of {', '.join(choices)}")
        return found

    return parse


def optional(parse: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """A reader for an option whose default is None."""
    return lambda raw: None if raw is None else parse(raw)


def at_least(minimum: int) -> Callable[[Any], int]:
    """A reader for whole numbers that are not too small."""

    def parse(raw: Any) -> int:
        value = parse_int(raw)
        if value < minimum:
            raise ValueError(f"{raw!r} is smaller than {minimum}")
        return value

    return parse


def parse_permissions(raw: Any) -> int:
    """The permissions of a file, as the operating system has them or in octal digits; its owner can read and write it.

    >>> oct(parse_permissions("640")), oct(parse_permissions(0o600))
    ('0o640', '0o600')
    """
    text = f"{raw:o}" if isinstance(raw, int) else parse_string(raw).strip()
    if not re.fullmatch(r"0?[67][0-7]{2}", text):
        raise ValueError(f"{raw!r} are no permissions of a file that its owner can read and write, such as '600'")
    return int(text, 8)


def in_millis(amount: timedelta) -> int:
    """An amount of time in whole milliseconds.

    >>> in_millis(timedelta(seconds=2))
    2000
    """
    return amount // timedelta(milliseconds=1)


# -- the options ------------------------------------------------------------------------------------------------------

#: Every option by key and by deprecated key.
OPTIONS: dict[str, ConfigOption[Any]] = {}
#: Keys with these prefixes have a meaning too; the rest of the key is the user's.
PREFIX_OPTIONS: dict[str, str] = {
    "rekindle.spark.conf.": "Passed to the Spark session that Rekindle creates, without the prefix.",
    "pipeline.global-job-parameters.": "One of the job's own parameters.",
    "rekindle.store.s3.": "A setting of obstore for s3:// stores that has no key of its own, by obstore's name for it.",
    "rekindle.store.gs.": "A setting of obstore for gs:// stores, by obstore's name for it.",
}
#: Where the settings of object stores begin that have no key of their own.
S3_STORE_PREFIX, GS_STORE_PREFIX = "rekindle.store.s3.", "rekindle.store.gs."


def _option(
    key: str, parse: Callable[[Any], T], default: T, description: str, *deprecated_keys: str
) -> ConfigOption[T]:
    option = ConfigOption(key, parse, default, description, deprecated_keys)
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
    "How often periodic watermarks come: once an interval, if it is set; 0: never. Unset, they come with the records, "
    "and a generator is also asked every 200 ms while none come.",
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
    "Whether a record that can change is handed on as it is; without, it is copied when it leaves a function.",
)
RUNTIME_MODE = _option(
    "execution.runtime-mode",
    one_of("STREAMING", "BATCH", "AUTOMATIC"),
    "STREAMING",
    "BATCH emits final results of bounded input only; AUTOMATIC chooses it when every source is bounded.",
)
BUFFER_TIMEOUT = _option(
    "execution.buffer-timeout.interval",
    parse_duration,
    timedelta(milliseconds=100),
    "Least time between the starts of two epochs: longer trades latency for less work.",
    "execution.buffer-timeout",
)
BUFFER_TIMEOUT_ENABLED = _option(
    "execution.buffer-timeout.enabled",
    parse_bool,
    True,
    "Whether an epoch starts before the target duration's worth of records is there.",
)

# Checkpoints
CHECKPOINT_INTERVAL = _option(
    "execution.checkpointing.interval",
    optional(parse_duration),
    None,
    "Time between the starts of two checkpoints; without it there are none.",
)
CHECKPOINT_MODE = _option(
    "execution.checkpointing.mode",
    one_of("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    "EXACTLY_ONCE",
    "Both give exactly once here, because barriers are always aligned.",
)
CHECKPOINT_TIMEOUT = _option(
    "execution.checkpointing.timeout",
    parse_duration,
    timedelta(minutes=10),
    "A checkpoint that takes longer is aborted.",
)
CHECKPOINT_MIN_PAUSE = _option(
    "execution.checkpointing.min-pause",
    parse_duration,
    timedelta(0),
    "Least time between the end of a checkpoint and the start of the next.",
)
CHECKPOINT_MAX_CONCURRENT = _option(
    "execution.checkpointing.max-concurrent-checkpoints",
    at_least(1),
    1,
    "How many checkpoints may be under way at a time.",
)
CHECKPOINT_TOLERABLE_FAILURES = _option(
    "execution.checkpointing.tolerable-failed-checkpoints",
    at_least(0),
    0,
    "How many checkpoints in a row may fail before the job does.",
)
CHECKPOINT_RETENTION = _option(
    "execution.checkpointing.externalized-checkpoint-retention",
    one_of("RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"),
    "NO_EXTERNALIZED_CHECKPOINTS",
    "What becomes of the checkpoints of a job that is cancelled; a job that fails keeps them.",
)
CHECKPOINT_DIRECTORY = _option(
    "execution.checkpointing.dir",
    optional(parse_string),
    None,
    "Where checkpoints are written; every executor and the driver must reach it.",
    "state.checkpoints.dir",
    "state.backend.fs.checkpointdir",
)
CHECKPOINT_FILE_PERMISSIONS = _option(
    "rekindle.checkpointing.file-permissions",
    parse_permissions,
    0o600,
    "The permissions of files of checkpoints and savepoints in a directory, in octal digits; folders follow. The umask "
    "of each process still takes away.",
)
SAVEPOINT_DIRECTORY = _option(
    "execution.checkpointing.savepoint-dir",
    optional(parse_string),
    None,
    "Where savepoints go that name no directory.",
    "state.savepoints.dir",
    "savepoints.state.backend.fs.dir",
)
S3_ENDPOINT = _option(
    "s3.endpoint",
    optional(parse_string),
    None,
    "The address of an S3-compatible server; without one, Amazon's.",
    "fs.s3a.endpoint",
)
S3_REGION = _option(
    "s3.endpoint.region",
    optional(parse_string),
    None,
    "The region of the bucket; without one, that of the environment.",
    "s3.region",
    "fs.s3a.endpoint.region",
)
S3_ACCESS_KEY = _option(
    "s3.access-key",
    optional(parse_string),
    None,
    "The access key for S3; without one, what the environment of each process says (variables, instance profile).",
    "s3.access.key",
    "fs.s3a.access.key",
)
S3_SECRET_KEY = _option(
    "s3.secret-key",
    optional(parse_string),
    None,
    "The secret key for S3; it is never shown.",
    "s3.secret.key",
    "fs.s3a.secret.key",
)
S3_SESSION_TOKEN = _option(
    "s3.session.token",
    optional(parse_string),
    None,
    "The token of temporary keys for S3; it is never shown.",
    "fs.s3a.session.token",
)
S3_PATH_STYLE = _option(
    "s3.path.style.access",
    optional(parse_bool),
    None,
    "Whether the bucket stands in the path of an S3 address instead of its host name; servers of one's own want that.",
    "s3.path-style-access",
    "fs.s3a.path.style.access",
)
CHECKPOINT_NUM_RETAINED = _option(
    "execution.checkpointing.num-retained",
    at_least(1),
    1,
    "How many completed checkpoints are kept.",
    "state.checkpoints.num-retained",
)
SINK_COMMITTER_RETRIES = _option(
    "sink.committer.retries",
    at_least(0),
    10,
    "How often a sink's commit is tried again before the job ends, or after a restore; then the job fails.",
)
SINK_COMMITTER_RETRY_DELAY = _option(
    "rekindle.sink.committer.retry-delay",
    parse_duration,
    timedelta(milliseconds=100),
    "The pause before the first of these retries; it doubles from one to the next, up to 5 s.",
)
CHECKPOINT_MAX_MEMORY = _option(
    "rekindle.checkpointing.max-memory-state-size",
    parse_size,
    5 * 1024 * 1024,
    "The largest state of one subtask in a checkpoint that is kept in the driver's memory; a larger one fails it.",
)
CHECKPOINT_INCREMENTAL = _option(
    "execution.checkpointing.incremental",
    parse_bool,
    True,
    "Whether a checkpoint writes only what has changed since an earlier one; without, it writes all state each time.",
    "state.backend.incremental",
)
UNALIGNED_ENABLED = _option(
    "execution.checkpointing.unaligned.enabled",
    parse_bool,
    False,
    "Whether records that wait in front of a slow task when an epoch's time is over go into the checkpoint.",
    "execution.checkpointing.unaligned",
)
ALIGNED_TIMEOUT = _option(
    "execution.checkpointing.aligned-checkpoint-timeout",
    parse_duration,
    timedelta(0),
    "How long, with unaligned checkpoints, an epoch goes on for the records that it has let in, at least its target "
    "duration; what waits after that goes into the checkpoint.",
    "execution.checkpointing.alignment-timeout",
)
RECOVERY_PATH = _option(
    "execution.state-recovery.path",
    optional(parse_string),
    None,
    "The checkpoint or savepoint from which the job starts; latest: where the job of this name was last.",
    "execution.savepoint.path",
)
RECOVERY_IGNORE_UNCLAIMED = _option(
    "execution.state-recovery.ignore-unclaimed-state",
    parse_bool,
    False,
    "Whether state that belongs to no operator of the job may be left behind.",
    "execution.savepoint.ignore-unclaimed-state",
)
RECOVERY_ALLOW_OLDER = _option(
    "rekindle.state-recovery.allow-older-checkpoint",
    parse_bool,
    False,
    "Whether a job with a sink that commits may begin from an older checkpoint when the newest one is damaged; what "
    "was committed since then is committed again.",
)
STATE_BACKEND = _option(
    "state.backend.type",
    one_of("hashmap", "rocksdb", filesystem="hashmap", jobmanager="hashmap"),
    "hashmap",
    "Where keyed state lives while the job runs: in the memory of the slots. There is no `rocksdb` yet.",
    "state.backend",
)
STATE_PICKLE = _option(
    "state.pickle",
    one_of("allow", "refuse"),
    "allow",
    "Whether elements and state of undeclared types may be pickled; `refuse` fails the job when it is built.",
)

# Restart
RESTART_STRATEGY = _option(
    "restart-strategy.type",
    optional(
        one_of(
            "none",
            "fixed-delay",
            "failure-rate",
            "exponential-delay",
            off="none",
            disable="none",
            fixeddelay="fixed-delay",
            failurerate="failure-rate",
            exponentialdelay="exponential-delay",
        )
    ),
    None,
    "What follows a failure; unset: exponential-delay with checkpoints, none without.",
    "restart-strategy",
)
FIXED_DELAY_ATTEMPTS = _option(
    "restart-strategy.fixed-delay.attempts", at_least(0), 1, "How many restarts there are before the job fails."
)
FIXED_DELAY = _option(
    "restart-strategy.fixed-delay.delay",
    parse_duration,
    timedelta(seconds=1),
    "Time between a failure and its restart.",
)
FAILURE_RATE_MAX_FAILURES = _option(
    "restart-strategy.failure-rate.max-failures-per-interval",
    at_least(1),
    1,
    "How many failures within the interval a job survives.",
)
FAILURE_RATE_INTERVAL = _option(
    "restart-strategy.failure-rate.failure-rate-interval",
    parse_duration,
    timedelta(minutes=1),
    "The interval over which failures are counted.",
)
FAILURE_RATE_DELAY = _option(
    "restart-strategy.failure-rate.delay",
    parse_duration,
    timedelta(seconds=1),
    "Time between a failure and its restart.",
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
    "restart-strategy.exponential-delay.backoff-multiplier",
    parse_float,
    1.5,
    "What the time is multiplied with after each failure.",
)
EXPONENTIAL_RESET_THRESHOLD = _option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    parse_duration,
    timedelta(hours=1),
    "After so long without a failure the time is the initial one again.",
)
EXPONENTIAL_JITTER = _option(
    "restart-strategy.exponential-delay.jitter-factor",
    parse_float,
    0.1,
    "The part of the time that is left to chance, so that jobs do not restart in step.",
)
EXPONENTIAL_ATTEMPTS = _option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    at_least(1),
    2**31 - 1,
    "How many restarts there are without a reset before the job fails.",
)

# Slots
HEARTBEAT_INTERVAL = _option(
    "heartbeat.interval", parse_duration, timedelta(seconds=10), "How often driver and slots tell each other they live."
)
HEARTBEAT_TIMEOUT = _option(
    "heartbeat.timeout", parse_duration, timedelta(seconds=50), "A peer that is silent for longer is lost."
)
CANCELLATION_TIMEOUT = _option(
    "task.cancellation.timeout",
    parse_duration,
    timedelta(minutes=3),
    "A task that does not end for so long after a cancellation is ended with its process; 0: never.",
)
GENERIC_TYPES = _option(
    "pipeline.generic-types",
    parse_bool,
    True,
    "Whether elements and state of undeclared types may be pickled; `false` is `state.pickle: refuse`.",
)
PYTHON_FILES = _option("python.files", optional(parse_list), None, "Files and folders that every slot can import from.")
PYTHON_EXECUTABLE = _option(
    "python.executable", optional(parse_string), None, "The interpreter of slots and Spark tasks; unset: this one."
)
JAVA_HOME = _option(
    "env.java.home", optional(parse_string), None, "The Java for the Spark session that Rekindle creates."
)

# Rekindle's own
MASTER = _option(
    "rekindle.master",
    optional(parse_string),
    None,
    "Where Spark runs (local[*], spark://host:port, yarn, k8s://...); unset: the active session's, else local[*].",
    "master",
)
EPOCH_MAX_RECORDS = _option(
    "rekindle.epoch.max-records", at_least(1), 4_000_000, "The most records that the sources give to one epoch."
)
EPOCH_INITIAL_RECORDS = _option(
    "rekindle.epoch.initial-records",
    at_least(1),
    1,
    "The cap of the first epoch, per source subtask. It grows while epochs are shorter than their target, by what "
    "records cost, and shrinks when they are longer.",
)
EPOCH_TARGET_DURATION = _option(
    "rekindle.epoch.target-duration",
    parse_duration,
    timedelta(seconds=1),
    "How long an epoch should take when there is much to do; at most half the checkpoint interval.",
)
EPOCH_CHUNK_RECORDS = _option(
    "rekindle.epoch.chunk-records", at_least(1), 4096, "The most records in one payload between two tasks."
)
SLOT_MEMORY_BUFFER = _option(
    "rekindle.slot.memory-buffer",
    parse_size,
    64 * 1024 * 1024,
    "What a slot's inbox and outbox hold in memory before they go to disk.",
)
SLOT_START_TIMEOUT = _option(
    "rekindle.slot.start-timeout",
    parse_duration,
    timedelta(seconds=60),
    "How long the driver waits for its slots to report.",
)
JAVA_STACK = _option("rekindle.errors.java-stack", parse_bool, False, "Whether errors show Spark's Java stack as well.")
PROGRESS = _option(
    "rekindle.progress",
    one_of("auto", "plain", "live", "off"),
    "auto",
    "How progress is shown: a live line on a terminal, plain lines elsewhere, or not at all.",
)
DRIVER_HOST = _option(
    "rekindle.driver.host",
    parse_string,
    "127.0.0.1",
    "The address at which slots find the driver: loopback serves one machine, a cluster needs an outer one.",
)
SPARK_SECRET_FILE = _option(
    "rekindle.spark.authenticate.secret-file",
    optional(parse_string),
    None,
    "A file, readable by its owner only, with the spark.authenticate.secret of the cluster that Spark is started on.",
)
TLS_CERTIFICATE = _option(
    "rekindle.tls.certificate",
    optional(parse_string),
    None,
    "The certificate (PEM) with which driver, slots and pumps of this host encrypt their TCP connections.",
)
TLS_KEY = _option(
    "rekindle.tls.key", optional(parse_string), None, "The private key (PEM) of that certificate, without a password."
)
TLS_AUTHORITY = _option(
    "rekindle.tls.authority",
    optional(parse_string),
    None,
    "The certificate (PEM) of the authority that has signed every host's certificate; nobody else's is taken.",
)
