"""An index by key in the database: values of keys seen lately are in memory, in two generations, as rows are.

When the young generation is full, the changed values of the old one are written, and it is dropped.
"""

from __future__ import annotations

from typing import Any, Final

from rekindle.runtime.key_bytes import canonical_bytes, owned_key
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.spec import Codec

#: A small dict with its keys and values, and its place in a generation.
VALUE_BYTES: Final = 800


class StoredIndex:
    """The `KeyIndex` on disk."""

    def __init__(self, database: ScratchDatabase, prefix: bytes, codec: Codec, most_values: int) -> None:
        """`codec` encodes the values; at most so many are in memory."""
        self._database = database
        self._prefix = prefix
        self._codec = codec
        self._half = max(1, most_values // 2)
        self._young: dict[Any, Any] = {}
        self._old: dict[Any, Any] = {}
        self._changed: set[Any] = set()

    def get(self, key: Any, /) -> Any:
        """The value of a key; None if it has none."""
        if key in self._young:
            return self._young[key]
        value = self._old.pop(key) if key in self._old else self._read(key)
        self._young[owned_key(key)] = value
        self._make_room()
        return value

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; None removes it."""
        self._old.pop(key, None)
        self._young[owned_key(key)] = value
        self._changed.add(owned_key(key))
        self._make_room()

    def _read(self, key: Any) -> Any:
        data = self._database.get(self._prefix + canonical_bytes(key))
        return None if data is None else self._codec.decode(data)

    def _make_room(self) -> None:
        if len(self._young) <= self._half:
            return
        leaving, self._old, self._young = self._old, self._young, {}
        self._database.write(
            (self._prefix + canonical_bytes(key), None if value is None else self._codec.encode(value))
            for key, value in leaving.items()
            if key in self._changed
        )
        self._changed.difference_update(leaving)

    def __len__(self) -> int:
        """The values in memory."""
        return len(self._young) + len(self._old)
