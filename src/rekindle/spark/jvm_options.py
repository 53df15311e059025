"""Options with which the driver's JVM starts fast: a program that is started again after a failure waits for it.

Most of the start is spent on compiling Java code that runs a few hundred times and never again. So the optimizing
compiler waits until code has run ten times as often as by default; the code of a long job gets there soon.
The rest of the start is loading classes, which an archive of them makes shorter (`class_archive`).
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyspark

from rekindle.spark.java import JavaHome, cache_folders

#: Ten times HotSpot's default thresholds.
_COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
#: For the short-lived JVM in which spark-submit builds Spark's command line.
_LAUNCHER = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: An untested Java may not know one of these options.
_LENIENT = ("-XX:+IgnoreUnrecognizedVMOptions",)
#: The JVM says nothing about an archive that does not fit.
ARCHIVE_IS_OPTIONAL = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def start_environment(environ: Mapping[str, str], archive: Iterable[str] = ()) -> dict[str, str]:
    """Environment variables for `spark-submit`; the user's own options in them come last, and win.

    >>> start_environment({"SPARK_SUBMIT_OPTS": "-Xss4m"})["SPARK_SUBMIT_OPTS"].split()[-1]
    '-Xss4m'
    """
    ours = {
        "SPARK_SUBMIT_OPTS": (*_LENIENT, *_COMPILE_LATER, *archive),
        "SPARK_LAUNCHER_OPTS": (*_LENIENT, *_LAUNCHER),
    }
    return {name: " ".join((*options, environ.get(name, ""))).strip() for name, options in ours.items()}


def archive_options(java: JavaHome, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Options with which the JVM uses the class archive; empty when this Java and this Spark have none."""
    name = archive_name(java, _jars(environ))
    for folder in cache_folders(environ):
        archive = folder / name
        if archive.is_file() and _is_ours(folder) and _is_ours(archive):
            return (shlex.quote(f"-XX:SharedArchiveFile={archive}"), *ARCHIVE_IS_OPTIONAL)
    return ()


def archive_of(java: JavaHome, environ: Mapping[str, str], folder: Path) -> Path:
    """The path in a folder of the archive for this Java and this Spark."""
    return folder / archive_name(java, _jars(environ))


def archive_name(java: JavaHome, jars: Iterable[Path]) -> str:
    """The archive's file name, different for each Java and each set of jars."""
    content = hashlib.sha256(f"{java.path} {java.major}".encode())
    for jar in jars:
        status = jar.stat()
        content.update(f"\n{jar} {status.st_size} {status.st_mtime_ns}".encode())
    return f"spark-classes-{content.hexdigest()[:16]}.jsa"


def _jars(environ: Mapping[str, str]) -> list[Path]:
    home = Path(environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return sorted((home / "jars").glob("*.jar"))


def _is_ours(path: Path) -> bool:
    """Whether only this user could have written the classes there, which we run."""
    status = path.lstat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
