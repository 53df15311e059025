"""Where a Spark session of a test keeps its blocks."""

from __future__ import annotations

import glob
import os
import tempfile
import uuid
from pathlib import Path
from typing import Any

from pyspark import StorageLevel


def block_folder(spark: Any) -> Path:
    """The folder of this very session: other sessions of this machine have theirs next to it."""
    token = uuid.uuid4().hex.encode()
    marker = spark.sparkContext.parallelize([bytearray(token)], 1).persist(StorageLevel.DISK_ONLY)
    marker.count()
    try:
        # Unlike pathlib's, this one does not mind folders that go away meanwhile.
        blocks = map(
            Path, glob.glob(f"{tempfile.gettempdir()}/rekindle-spark-*/**/rdd_{marker.id()}_0", recursive=True)
        )
        (found,) = (block for block in blocks if token in _content(block))
    finally:
        marker.unpersist(True)
    return found.parents[1]


def _content(block: Path) -> bytes:
    """Of another session's block that is just being removed: nothing."""
    try:
        return block.read_bytes()
    except FileNotFoundError:
        return b""


def shuffle_files(folder: Path) -> int:
    """How many files of shuffles are on the disk."""
    return sum(name.startswith("shuffle_") for _, _, names in os.walk(folder) for name in names)
