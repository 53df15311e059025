"""Options with which the driver's JVM starts quickly: a program that is started again after a failure waits for it.

Most of the start is spent on compiling Java code that runs a few hundred times and never again. So the optimizing
compiler waits until code is ten times as hot as usual; what a long job runs all the time, it reaches soon enough.
The rest is loading classes, which an archive of them makes shorter (`class_archive`).
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyspark

from rekindle.spark.java import JavaHome, cache_folders

#: Ten times HotSpot's own.
_COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
#: Of the small JVM that spark-submit asks for Spark's command line: it lives for a moment.
_LAUNCHER = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: Another Java than those that these were tried with may not know one of them.
_LENIENT = ("-XX:+IgnoreUnrecognizedVMOptions",)
#: An archive that does not fit is no news.
ARCHIVE_IS_OPTIONAL = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def start_environment(environ: Mapping[str, str], archive: Iterable[str] = ()) -> dict[str, str]:
    """Environment variables for `spark-submit`; options that the user has in them come last, and win.

    >>> start_environment({"SPARK_SUBMIT_OPTS": "-Xss4m"})["SPARK_SUBMIT_OPTS"].split()[-1]
    '-Xss4m'
    """
    ours = {
        "SPARK_SUBMIT_OPTS": (*_LENIENT, *_COMPILE_LATER, *archive),
        "SPARK_LAUNCHER_OPTS": (*_LENIENT, *_LAUNCHER),
    }
    return {name: " ".join((*options, environ.get(name, ""))).strip() for name, options in ours.items()}


def archive_options(java: JavaHome, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Options with which the JVM uses the archive; none when there is no archive for this Java and this Spark."""
    name = archive_name(java, _jars(environ))
    for folder in cache_folders(environ):
        archive = folder / name
        if archive.is_file() and _is_ours(folder) and _is_ours(archive):
            return (shlex.quote(f"-XX:SharedArchiveFile={archive}"), *ARCHIVE_IS_OPTIONAL)
    return ()


def archive_of(java: JavaHome, environ: Mapping[str, str], folder: Path) -> Path:
    """Where in a folder the archive for this Java and this Spark is."""
    return folder / archive_name(java, _jars(environ))


def archive_name(java: JavaHome, jars: Iterable[Path]) -> str:
    """Another one for another Java and for other jars."""
    content = hashlib.sha256(f"{java.path} {java.major}".encode())
    for jar in jars:
        status = jar.stat()
        content.update(f"\n{jar} {status.st_size} {status.st_mtime_ns}".encode())
    return f"spark-classes-{content.hexdigest()[:16]}.jsa"


def _jars(environ: Mapping[str, str]) -> list[Path]:
    home = Path(environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return sorted((home / "jars").glob("*.jar"))


def _is_ours(path: Path) -> bool:
    """Nobody else could have put classes there for us to run."""
    status = path.lstat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
