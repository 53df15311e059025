"""Keyed backends and timers for tests: in memory, in RocksDB, and in RocksDB with hardly any cache: all leave it."""

from __future__ import annotations

import atexit
import itertools
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend, RocksPlace
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.stored_timers import StoredTimers, TimerPlace
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.runtime.timers import InternalTimers

NewBackend = Callable[..., Any]

_operators = itertools.count()
_databases: list[ScratchDatabase] = []
_MOST_OPERATORS = 1 << 16
#: A few changes stay together before they go to a file: a key may stand among them several times.
_FEW_CHANGES_BYTES = 600


def _database_and_number() -> tuple[ScratchDatabase, int]:
    """A place of its own in a database that all tests of the process share."""
    number = next(_operators) % _MOST_OPERATORS
    if number == 0:
        folder = tempfile.TemporaryDirectory(prefix="rekindle-test-rocksdb-")
        _databases.append(ScratchDatabase(Path(folder.name), MemoryShares.of(16 << 20)))
        atexit.register(folder.cleanup)
        atexit.register(_databases[-1].close)
    return _databases[-1], number


def place_of(row_bytes: int, log_bytes: int) -> RocksPlace:
    return RocksPlace(*_database_and_number(), row_bytes, log_bytes)


def _rocksdb(
    max_parallelism: int, key_groups: range, options: KeyedStateOptions | None = None, **more: Any
) -> RocksKeyedBackend:
    return RocksKeyedBackend(
        max_parallelism, key_groups, place_of(16 << 20, 1 << 20), options or KeyedStateOptions(), **more
    )


def _tiny_cache(
    max_parallelism: int, key_groups: range, options: KeyedStateOptions | None = None, *, rows: int = 1, **more: Any
) -> RocksKeyedBackend:
    backend = RocksKeyedBackend(
        max_parallelism, key_groups, place_of(0, _FEW_CHANGES_BYTES), options or KeyedStateOptions(), **more
    )
    backend._cache.least_rows = rows
    backend._cache.note_sizes([b""], 1)
    return backend


#: Name -> makes a backend with the arguments of `HashMapKeyedBackend`.
BACKENDS: dict[str, NewBackend] = {
    "hashmap": HashMapKeyedBackend,
    "rocksdb": _rocksdb,
    "rocksdb without cache": _tiny_cache,
}
#: The same for window operators, which hold a row while they load a few others.
WINDOW_BACKENDS: dict[str, NewBackend] = BACKENDS | {"rocksdb without cache": partial(_tiny_cache, rows=4)}

#: Nearly every timer is on disk: it goes there when it is set, alone, and comes back alone.
TINY_LIMITS = TimerLimits(near=2, page=1, waiting=1, logged=1)


def stored_timers(limits: TimerLimits, max_parallelism: int, key_groups: range, **more: Any) -> StoredTimers:
    """Timers on disk with these limits."""
    return StoredTimers(max_parallelism, key_groups, TimerPlace(*_database_and_number(), limits), **more)


#: Name -> makes timers with the arguments of `InternalTimers`.
TIMERS: dict[str, Callable[..., InternalTimers]] = {
    "hashmap": InternalTimers,
    "rocksdb": partial(stored_timers, TimerLimits.of(0)),
    "rocksdb without cache": partial(stored_timers, TINY_LIMITS),
}
