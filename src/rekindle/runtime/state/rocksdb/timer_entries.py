"""Timers as entries: a position that sorts as timers fire, and a value with key group, key and namespace, encoded.

Entries go from the database and from the log of changes into a snapshot's parts without being decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec

from rekindle.runtime.key_bytes import canonical_bytes, owned_key
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.state.rocksdb.element_codecs import ElementCodec, element_codec
from rekindle.runtime.state.rocksdb.stored_states import packed, unpacked
from rekindle.runtime.state.spec import Codec
from rekindle.runtime.timer_parts import Timer, TimerColumns, TimerPart
from rekindle.serde.type_schema import encode_schema

_TIME: Final = Struct(">Q")
_SIGN: Final = 1 << 63
_GROUP: Final = Struct(">H")
_encode = msgspec.msgpack.Encoder().encode


class RawTimer(NamedTuple):
    """A timer whose key and namespace are encoded."""

    position: bytes
    key: bytes
    namespace: bytes
    is_set: bool = True


def timer_position(time: int, key: Any, namespace: Any) -> bytes:
    """The place of a timer among all timers: by time, then by the bytes of key and namespace (I1).

    >>> timer_position(-1, "b", None) < timer_position(0, "a", None) < timer_position(0, "b", None)
    True
    """
    try:
        packed_time = _TIME.pack(time + _SIGN)
    except (struct.error, TypeError) as error:
        raise ValueError(
            f"A timer's time must be whole milliseconds between -2**63 and 2**63 - 1, not {time!r}."
        ) from error
    return packed_time + canonical_bytes(key) + canonical_bytes(namespace)


def time_of(position: bytes) -> int:
    """The time of a timer."""
    return int(_TIME.unpack_from(position)[0]) - _SIGN


class TimerEntries:
    """Between timers, their entries and a snapshot's parts, for one operator."""

    def __init__(self, max_parallelism: int, key_codec: Codec, namespace_codec: Codec) -> None:
        self._max_parallelism = max_parallelism
        self._keys: ElementCodec = element_codec(key_codec)
        self._namespaces: ElementCodec = element_codec(namespace_codec)
        self._key_schema = encode_schema(key_codec.schema)

    def _encoded(self, timers: Collection[Timer]) -> Iterator[tuple[int, bytes, bytes]]:
        """Key group, key and namespace of timers."""
        keys = self._keys.elements([owned_key(key) for _, key, _ in timers])
        namespaces = self._namespaces.elements([namespace for _, _, namespace in timers])
        groups = (key_group(key, self._max_parallelism) for _, key, _ in timers)
        return zip(groups, keys, namespaces, strict=True)

    def raw(self, timers: Mapping[Timer, bool]) -> list[tuple[int, RawTimer]]:
        """Encode timers, and whether they are set; each with its key group."""
        if not timers:
            return []
        encoded = zip(starmap(timer_position, timers), self._encoded(timers.keys()), timers.values(), strict=True)
        return [
            (group, RawTimer(position, key, namespace, there)) for position, (group, key, namespace), there in encoded
        ]

    def values(self, timers: Collection[Timer]) -> list[bytes]:
        """The values of timers in the database."""
        return [_GROUP.pack(group) + packed(key, namespace) for group, key, namespace in self._encoded(timers)]

    def raw_entries(self, entries: Sequence[tuple[bytes, bytes]]) -> list[tuple[int, RawTimer]]:
        """Timers from their entries in the database, not decoded; each with its key group."""
        pieces = zip(entries, *unpacked([value[_GROUP.size :] for _, value in entries]), strict=True)
        return [
            (_GROUP.unpack_from(value)[0], RawTimer(position, bytes(key), bytes(namespace)))
            for (position, value), key, namespace in pieces
        ]

    def timers(self, entries: Sequence[tuple[bytes, bytes]]) -> list[Timer]:
        """Decode entries of the database."""
        if not entries:
            return []
        keys, namespaces = unpacked([value[_GROUP.size :] for _, value in entries])
        times = (time_of(position) for position, _ in entries)
        return list(zip(times, self._keys.values(keys), self._namespaces.values(namespaces), strict=True))

    def part(self, kinds: Sequence[Iterable[RawTimer]]) -> bytes:
        """A part with event, processing, removed event and removed processing timers of one key group."""
        keys: dict[bytes, int] = {}
        namespaces: dict[bytes, int] = {}

        def columns(timers: Iterable[RawTimer]) -> TimerColumns:
            found = TimerColumns([], [], [])
            for position, key, namespace, _ in timers:
                found.times.append(time_of(position))
                found.keys.append(keys.setdefault(key, len(keys)))
                found.namespaces.append(namespaces.setdefault(namespace, len(namespaces)))
            return found

        event, processing, removed_event, removed_processing = map(columns, kinds)
        part = TimerPart(
            self._key_schema,
            self._keys.column(list(keys)),
            self._namespaces.column(list(namespaces)),
            event,
            processing,
            removed_event,
            removed_processing,
        )
        return _encode(part)
