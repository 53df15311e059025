"""Spark's Python daemon for sessions of our own on this machine: workers start with everything imported.

    python -m rekindle.spark.worker_daemon pyspark.worker      (started by Spark, never by hand)

Spark puts pyspark as a zip file without compiled code before the installed package. The daemon would compile it at
each start, and every worker the modules that it needs beyond that: a second of processor time before the first slot.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from rekindle.runtime.slot_starter import fork_starter

_ZIP_DEPTH = 3  # pyspark/python/lib/pyspark.zip
_imports_are_frozen = False


def superfluous_zips(search_path: Sequence[str]) -> set[str]:
    """The zip files of an installed pyspark on a path that also finds the installed package itself."""
    folders = {os.path.realpath(entry) for entry in search_path if os.path.isdir(entry)}
    return {entry for entry in search_path if entry.endswith(".zip") and _belongs_to_package(entry, folders)}


def _belongs_to_package(entry: str, folders: set[str]) -> bool:
    package = os.path.realpath(entry)
    for _ in range(_ZIP_DEPTH):
        package = os.path.dirname(package)
    return os.path.exists(os.path.join(package, "__init__.py")) and os.path.dirname(package) in folders


def freeze_imports() -> None:
    """Freeze imported objects: Spark collects garbage after every task, and would walk all of pyspark (10 to 20 ms).

    A worker calls it too: other daemons than this one freeze nothing.
    """
    global _imports_are_frozen
    if not _imports_are_frozen:
        _imports_are_frozen = True
        gc.collect()
        gc.freeze()


def main() -> None:
    """Fork the starter of slots, import the modules that every worker needs, once, then run pyspark's daemon."""
    superfluous = superfluous_zips(sys.path)
    sys.path[:] = [entry for entry in sys.path if entry not in superfluous]
    fork_starter()
    # Not pyspark.worker: modules that it may import start threads, which do not survive a fork.
    import pyspark.daemon

    import rekindle.spark.pump
    import rekindle.spark.slots  # noqa: F401

    freeze_imports()  # else every worker's first garbage collection walks, and so copies, all of this memory
    pyspark.daemon.manager()


if __name__ == "__main__":
    main()
