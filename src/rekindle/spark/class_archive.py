"""Makes an archive of Spark's Java classes, already loaded and verified: the JVM maps it into memory at its start.

    python -m rekindle.spark.class_archive            # once: half a minute, and 150 MB in the cache directory

With the archive Spark needs half the processor time to start, also when a program starts again after its driver died.
The archive is optional: the JVM checks that it fits Java and every jar, and ignores it if it does not.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from rekindle.common import Configuration, Types
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import ClusterError
from rekindle.spark import internals
from rekindle.spark.gateway import end_jvm, patched_environment
from rekindle.spark.java import cache_folders, ensure_java, ensure_private_folder
from rekindle.spark.jvm_options import ARCHIVE_IS_OPTIONAL, archive_of
from rekindle.spark.session import active_context
from rekindle.spark.shared_session import stop_own_session


def make_archive(environ: Mapping[str, str] | None = None) -> Path:
    """Run a small job and archive the classes that it loaded, in a process that has no JVM yet."""
    environ = os.environ if environ is None else environ
    if internals.has_gateway():
        raise ClusterError("This process has a JVM already: make the archive in a process of its own.")
    java = ensure_java(environ)
    folder = _first_private_folder(cache_folders(environ))
    archive = archive_of(java, environ, folder)
    archive.unlink(missing_ok=True)  # a JVM that uses an archive cannot make one
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        unfinished = Path(scratch) / archive.name
        options = [shlex.quote(f"-XX:ArchiveClassesAtExit={unfinished}"), *ARCHIVE_IS_OPTIONAL]
        with patched_environment({"SPARK_SUBMIT_OPTS": " ".join([*options, environ.get("SPARK_SUBMIT_OPTS", "")])}):
            _run_a_job()
            stop_own_session()
            end_jvm()  # the JVM writes the archive when it ends
        if not unfinished.is_file():
            raise ClusterError(
                f"The Java at {java.path} made no archive: it makes none when Spark's class path has a folder with"
                " files in it, such as a Spark configuration. Spark starts without an archive."
            )
        unfinished.replace(archive)
    return archive


def _run_a_job() -> None:
    """Run a job that needs of Spark what every job needs, slots and epochs with an exchange, and a query."""
    settings = {"rekindle.master": "local[2]", "rekindle.progress": "off"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    keyed = env.from_collection(list(range(1000)), Types.LONG()).key_by(lambda number: number % 7, Types.LONG())
    with keyed.reduce(max).execute_and_collect() as results:
        assert sum(1 for _ in results) == 1000
    # DataFrames as source and result, tables, and state that is read as a table need Spark SQL.
    context = active_context()
    assert context is not None, "the job has stopped its Spark"
    numbers = SparkSession(context).range(8)
    numbers.groupBy((numbers.id % 2).alias("odd")).count().collect()


def _first_private_folder(folders: Sequence[Path]) -> Path:
    for folder in folders:
        try:
            ensure_private_folder(folder)
        except OSError:
            continue
        return folder
    raise ClusterError(f"None of these folders is this user's own: {', '.join(map(str, folders))}; set XDG_CACHE_HOME.")


def main() -> None:
    """Make the archive and print its path."""
    archive = make_archive()
    print(f"{archive} ({archive.stat().st_size >> 20} MB): Spark starts faster from now on.")


if __name__ == "__main__":
    main()
