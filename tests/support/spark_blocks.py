"""Finds and counts the block files of a test's Spark session."""

from __future__ import annotations

import glob
import os
import tempfile
import uuid
from pathlib import Path
from typing import Any

from pyspark import StorageLevel


def block_folder(spark: Any) -> Path:
    """The block folder of this session; other sessions of this machine have theirs beside it."""
    token = uuid.uuid4().hex.encode()
    marker = spark.sparkContext.parallelize([bytearray(token)], 1).persist(StorageLevel.DISK_ONLY)
    marker.count()
    try:
        # os.walk, unlike pathlib, ignores folders that are removed meanwhile.
        blocks = map(
            Path, glob.glob(f"{tempfile.gettempdir()}/rekindle-spark-*/**/rdd_{marker.id()}_0", recursive=True)
        )
        (found,) = (block for block in blocks if token in _content(block))
    finally:
        marker.unpersist(True)
    return found.parents[1]


def _content(block: Path) -> bytes:
    """The content of a file; empty if another session has just removed it."""
    try:
        return block.read_bytes()
    except FileNotFoundError:
        return b""


def shuffle_files(folder: Path) -> int:
    """The number of shuffle files on disk."""
    return sum(name.startswith("shuffle_") for _, _, names in os.walk(folder) for name in names)
