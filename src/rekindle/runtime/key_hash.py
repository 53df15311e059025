"""The hash of a key, its key group, and the subtask to which it is routed: equal in every process (I11)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from zlib import crc32

from rekindle.key_groups import subtask_for_key_group
from rekindle.runtime.key_bytes import canonical_bytes

_MOST_SLOTS: Final = 1 << 18
#: The entries of a router that seldom knows a key. More would only take memory.
_FEW_ENTRIES: Final = 1 << 13
#: About the bytes of an entry: its place in the dict and a short text.
_ENTRY_BYTES: Final = 100

T = TypeVar("T")

_MASK64: Final = (1 << 64) - 1
_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1
# 2^64 divided by the golden ratio: the high half of the product spreads neighbours apart.
_GOLDEN64: Final = 0x9E3779B97F4A7C15


def key_hash(key: Any) -> int:
    """Return a 32-bit hash: equal keys have equal hashes, in every process."""
    kind = type(key)
    if kind is str:
        try:
            return crc32(key.encode())
        except UnicodeEncodeError:  # lone surrogates
            return crc32(key.encode("utf-8", "surrogatepass"))
    if kind is not int:
        encoded = canonical_bytes(key)
        # The key equals an int or a str but has another type: hash it as that int or str.
        if 0x16 <= encoded[0] <= 0x29:
            key = int(key)
        elif encoded[0] == 0x40:
            return crc32(str.encode(key, "utf-8", "surrogatepass"))
        else:
            return crc32(encoded)
    number: int = key
    if _INT64_MIN <= number <= _INT64_MAX:
        return ((number * _GOLDEN64) & _MASK64) >> 32
    return crc32(canonical_bytes(key))


def key_group(key: Any, max_parallelism: int) -> int:
    """Return the key group of a key, the unit by which state is snapshotted and moved.

    >>> key_group("a", 128) == key_group("a", 128), key_group(1, 128) == key_group(1.0, 128)
    (True, True)
    """
    return key_hash(key) % max_parallelism


def key_groups_of(keys: Sequence[Any], max_parallelism: int) -> list[int]:
    """The key groups of many keys; quicker than one by one if all are text.

    >>> key_groups_of(["a", "b"], 128) == [key_group("a", 128), key_group("b", 128)]
    True
    """
    if set(map(type, keys)) == {str}:
        with suppress(UnicodeEncodeError):  # lone surrogates
            return [crc32(key.encode()) % max_parallelism for key in keys]
    return [key_group(key, max_parallelism) for key in keys]


def router_entries(most_bytes: int | None = None) -> int:
    """The most entries of a router that may have about so much memory; as many as its dict takes before it grows.

    >>> router_entries(), router_entries(8 << 20)
    (174762, 87381)
    """
    slots = _MOST_SLOTS
    if most_bytes is not None:
        slots = min(slots, max(_FEW_ENTRIES, 1 << (most_bytes // _ENTRY_BYTES).bit_length()))
    return 2 * slots // 3


class KeyRouter(dict[Any, T]):
    """Maps each key to the choice of its subtask and caches it: hot code writes `router[key]`. A full cache is cleared.

    >>> router = KeyRouter(128, ["left", "right"])
    >>> router["a"] == router["a"]
    True
    """

    __slots__ = ("_choices", "_lookups", "_max_parallelism", "_most_entries")

    def __init__(self, max_parallelism: int, choices: Sequence[T], most_entries: int | None = None) -> None:
        super().__init__()
        self._max_parallelism = max_parallelism
        self._choices = choices
        self._most_entries = most_entries or router_entries()
        self._lookups = 0

    def note_lookups(self, lookups: int) -> None:
        """Count lookups: they tell whether the cache is worth its memory."""
        self._lookups += lookups

    def __missing__(self, key: Any) -> T:
        group = key_group(key, self._max_parallelism)
        chosen = self._choices[subtask_for_key_group(group, self._max_parallelism, len(self._choices))]
        if len(self) >= self._most_entries:
            self._clear_full()
        self[key] = chosen
        return chosen

    def _clear_full(self) -> None:
        found = self._lookups - len(self)
        if found < len(self) // 2:
            self._most_entries = min(self._most_entries, _FEW_ENTRIES)
        self._lookups = 0
        self.clear()
