"""State backends: the settings of where keyed state lives while a job runs."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from rekindle import config
from rekindle.common.java_names import RefusesJavaNames
from rekindle.config import ConfigOption
from rekindle.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from rekindle.datastream.validation import warn_no_effect
from rekindle.errors import GraphError
from rekindle.places import is_url, parse_place

_HOST = re.compile(r"file://[^/]*")
#: Flink's default.
_TRANSFER_THREADS = 4


class StateBackend(RefusesJavaNames):
    """Base of the state backends."""

    def name(self) -> str:
        """Return the value of `state.backend.type` for this backend."""
        raise NotImplementedError(f"{type(self).__name__} does not override name()")

    def checkpoint_storage(self) -> CheckpointStorage | None:
        """Return the checkpoint storage of this backend, or None to use the job's."""
        return None

    def settings(self) -> dict[ConfigOption[Any], Any]:
        """Return the settings of the job that were chosen with this backend."""
        return {}


class HashMapStateBackend(StateBackend):
    """Keeps state in the memory of the slots.

    >>> HashMapStateBackend().name()
    'hashmap'
    """

    def name(self) -> str:
        """Return `hashmap`."""
        return "hashmap"

    def __str__(self) -> str:
        return "HashMapStateBackend"


class PredefinedOptions(Enum):
    """Predefined settings of RocksDB for a kind of disk."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state in RocksDB, on the local disks of the slots.

    >>> backend = EmbeddedRocksDBStateBackend(enable_incremental_checkpointing=True)
    >>> backend.name(), backend.is_incremental_checkpoints_enabled()
    ('rocksdb', True)
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = enable_incremental_checkpointing
        self._db_storage_paths: list[str] | None = None
        self._predefined_options = PredefinedOptions.DEFAULT
        self._transfer_threads = _TRANSFER_THREADS
        self._options_factory: str | None = None

    def name(self) -> str:
        """Return `rocksdb`."""
        return "rocksdb"

    def __str__(self) -> str:
        """Flink's text of the backend: its directories, and what was set."""
        paths = None if self._db_storage_paths is None else f"[{', '.join(self._db_storage_paths)}]"
        chosen = "UNDEFINED" if self._incremental is None else str(self._incremental).upper()
        return (
            f"EmbeddedRocksDBStateBackend{{, localRocksDbDirectories={paths or 'null'}, "
            f"enableIncrementalCheckpointing={chosen}, numberOfTransferThreads={self._shown_threads()}, "
            "writeBatchSize=-1}"
        )

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set local directories for the database files; each slot takes one. Without any, it is the slot's own."""
        if any(not isinstance(path, str) or not path for path in paths):
            raise GraphError(f"set_db_storage_paths takes directories, not {paths!r}.")
        self._db_storage_paths = [_local(path) for path in paths] or None

    def get_db_storage_paths(self) -> list[str] | None:
        """Return the local directories, or None."""
        return self._db_storage_paths

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints write only changes, if that was chosen here; else the job's setting counts."""
        return bool(self._incremental)

    def settings(self) -> dict[ConfigOption[Any], Any]:
        """Return the chosen directories, and whether checkpoints write only changes."""
        chosen: dict[ConfigOption[Any], Any] = {}
        if self._db_storage_paths is not None:
            chosen[config.ROCKSDB_LOCAL_DIRECTORIES] = self._db_storage_paths
        if self._incremental is not None:
            chosen[config.CHECKPOINT_INCREMENTAL] = self._incremental
        return chosen

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Keep the settings for a kind of disk. They have no effect here: memory alone decides RocksDB's settings."""
        self._predefined_options = options
        if options is not PredefinedOptions.DEFAULT:
            warn_no_effect("set_predefined_options()", "taskmanager.memory.managed.size decides RocksDB's settings")

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the settings for a kind of disk."""
        return self._predefined_options

    def set_options(self, options_factory_class_name: str) -> None:
        """Keep the name of a Java options factory. It has no effect here: memory alone decides RocksDB's settings."""
        self._options_factory = options_factory_class_name
        warn_no_effect("set_options()", "taskmanager.memory.managed.size decides RocksDB's settings")

    def get_options(self) -> str | None:
        """Return the name of the Java options factory, or None."""
        return self._options_factory

    def _shown_threads(self) -> int:
        return -1 if self._transfer_threads == _TRANSFER_THREADS else self._transfer_threads

    def get_number_of_transfer_threads(self) -> int:
        """Return the number of threads that upload and download files."""
        return self._transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set the number of threads that upload and download files."""
        if number_of_transfering_threads < 1:
            raise GraphError(f"At least one thread must transfer files, not {number_of_transfering_threads}.")
        self._transfer_threads = number_of_transfering_threads
        warn_no_effect("set_number_of_transfer_threads()", "one thread of each slot uploads its state")


def _local(path: str) -> str:
    """The directory of a `file:` address, as Flink reads it, which leaves out a host; another path as it is."""
    try:
        place = parse_place(_HOST.sub("file://", path)) if is_url(path) else None
    except ValueError as error:
        raise GraphError(f"{error}.") from None
    return place.path.rstrip("/") if place is not None and place.is_local else path


class CustomStateBackend(StateBackend):
    """A Java state backend in PyFlink. Rekindle cannot load Java classes, so creating one fails.

    >>> CustomStateBackend(None)
    Traceback (most recent call last):
    rekindle.errors.GraphError: Java state backends cannot be used: take HashMapStateBackend or \
EmbeddedRocksDBStateBackend.
    """

    def __init__(self, j_custom_state_backend: object) -> None:
        raise GraphError("Java state backends cannot be used: take HashMapStateBackend or EmbeddedRocksDBStateBackend.")


# -- Flink 1 names, each for a state backend and a checkpoint storage together ----------------------------------------


class MemoryStateBackend(HashMapStateBackend):
    """Keeps state in the memory of the slots, and checkpoints in the driver's memory, for small state and tests.

    >>> MemoryStateBackend().name(), type(MemoryStateBackend().checkpoint_storage()).__name__
    ('hashmap', 'JobManagerCheckpointStorage')
    """

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._storage = JobManagerCheckpointStorage(checkpoint_path, max_state_size)

    def checkpoint_storage(self) -> CheckpointStorage:
        """Return the storage in the driver's memory."""
        return self._storage


class FsStateBackend(HashMapStateBackend):
    """Keeps state in the memory of the slots, and checkpoints in a directory.

    >>> FsStateBackend("file:///checkpoints").name()
    'hashmap'
    """

    def __init__(self, checkpoint_directory_uri: str, file_state_size_threshold: int | None = None) -> None:
        self._storage = FileSystemCheckpointStorage(checkpoint_directory_uri, file_state_size_threshold)

    def checkpoint_storage(self) -> CheckpointStorage:
        """Return the storage in the directory."""
        return self._storage


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """Keeps state in RocksDB, and checkpoints in a directory.

    >>> RocksDBStateBackend("file:///checkpoints", enable_incremental_checkpointing=True).name()
    'rocksdb'
    """

    def __init__(self, checkpoint_data_uri: str, enable_incremental_checkpointing: bool | None = None) -> None:
        super().__init__(enable_incremental_checkpointing)
        self._storage = FileSystemCheckpointStorage(checkpoint_data_uri)

    def checkpoint_storage(self) -> CheckpointStorage:
        """Return the storage in the directory."""
        return self._storage
