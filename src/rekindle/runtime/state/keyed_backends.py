"""Make the keyed backends and timers of a slot's operators: all in memory, or all in the slot's RocksDB."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rekindle.errors import StateBackendError
from rekindle.graph.settings import StateBackendSettings
from rekindle.runtime.directories import OwnDirectory
from rekindle.runtime.scratch_folders import make_scratch_folder
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend, RocksPlace
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.stored_timers import StoredTimers, TimerPlace
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.runtime.state.spec import Codec
from rekindle.runtime.timers import InternalTimers
from rekindle.system import keep_heap_small


@dataclass(frozen=True)
class KeyedOperatorShape:
    """The facts about an operator that its backend needs."""

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
        self._shares = MemoryShares.of(settings.managed_bytes)
        self._made = 0
        self._database: ScratchDatabase | None = None
        self._scratch: OwnDirectory | None = None
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

    def create_timers(
        self, max_parallelism: int, key_groups: range, key_codec: Codec, *, allow_pickle: bool
    ) -> InternalTimers:
        """Make the timers of an operator."""
        if not self.on_disk:
            return InternalTimers(max_parallelism, key_groups, key_codec=key_codec, allow_pickle=allow_pickle)
        return StoredTimers(
            max_parallelism, key_groups, self._timer_place(), key_codec=key_codec, allow_pickle=allow_pickle
        )

    def _place(self) -> RocksPlace:
        shares, operators = self._shares, self._operators
        database, number = self._database_and_number()
        return RocksPlace(database, number, shares.row_bytes // operators, shares.log_bytes // operators)

    def _timer_place(self) -> TimerPlace:
        database, number = self._database_and_number()
        return TimerPlace(database, number, TimerLimits.of(self._shares.timer_bytes // self._operators))

    def _database_and_number(self) -> tuple[ScratchDatabase, int]:
        """The slot's database, and a number of which nobody else has entries in it."""
        with self._lock:
            if self._database is None:
                keep_heap_small()
                self._database = ScratchDatabase(self._scratch_folder(), self._shares)
            self._made += 1
            return self._database, self._made

    def _scratch_folder(self) -> Path:
        """The folder of the database: in the slot's directory, or in the one that the user chose."""
        directories = self._settings.local_directories
        if not directories:
            return Path(self._folder)
        try:
            self._scratch = make_scratch_folder(self._folder, directories)
        except OSError as error:
            raise StateBackendError(
                f"A folder for the RocksDB of this slot cannot be made in {' or '.join(directories)}: {error}. Make it "
                "writable on every host, or set state.backend.rocksdb.localdir to another directory."
            ) from error
        return Path(self._scratch.path)

    def close(self) -> None:
        """Close the database and remove its files."""
        if self._database is not None:
            self._database.close()
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None
