"""Make the keyed backends of a slot's operators: all in memory, or all in the slot's RocksDB."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from rekindle.graph.settings import StateBackendSettings
from rekindle.runtime.guardian import note_scratch_folder, remove_scratch_folders
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend, RocksPlace
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.spec import Codec


@dataclass(frozen=True)
class KeyedOperatorShape:
    """What a backend has to know of its operator."""

    max_parallelism: int
    key_groups: range
    key_codec: Codec
    #: The key group of a row's key where that is a compound, such as (key, window).
    key_group_of: Callable[[Any], int] | None = None


class KeyedBackends:
    """The backends of one slot. A database is opened when the first operator needs it."""

    def __init__(self, settings: StateBackendSettings, folder: str, operators: int = 1) -> None:
        """`operators`: the number of keyed operators that share the slot's memory."""
        self._settings = settings
        self._folder = folder
        self._operators = max(1, operators)
        self._made = 0
        self._database: ScratchDatabase | None = None
        self._lock = threading.Lock()

    @property
    def on_disk(self) -> bool:
        """Whether state may be larger than memory."""
        return self._settings.is_rocksdb

    def create(self, shape: KeyedOperatorShape, options: KeyedStateOptions) -> KeyedStateBackend:
        """Make the backend of an operator."""
        if not self.on_disk:
            return HashMapKeyedBackend(
                shape.max_parallelism,
                shape.key_groups,
                options,
                key_codec=shape.key_codec,
                key_group_of=shape.key_group_of,
            )
        return RocksKeyedBackend(
            shape.max_parallelism,
            shape.key_groups,
            self._place(),
            options,
            key_codec=shape.key_codec,
            key_group_of=shape.key_group_of,
        )

    def _place(self) -> RocksPlace:
        shares = MemoryShares.of(self._settings.managed_bytes)
        with self._lock:
            if self._database is None:
                self._database = ScratchDatabase(self._scratch_folder(), shares)
            self._made += 1
            return RocksPlace(
                self._database, self._made, shares.row_bytes // self._operators, shares.log_bytes // self._operators
            )

    def _scratch_folder(self) -> Path:
        """The folder of the database: in the slot's directory, or in the one that the user chose."""
        directories = self._settings.local_directories
        if not directories:
            return Path(self._folder)
        name = uuid4()
        scratch = Path(directories[name.int % len(directories)]) / f"rekindle-{name.hex}"
        note_scratch_folder(self._folder, str(scratch))
        return scratch

    def close(self) -> None:
        """Close the database and remove its files."""
        if self._database is not None:
            self._database.close()
        remove_scratch_folders(self._folder)
