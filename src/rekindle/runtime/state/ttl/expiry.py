"""Time to live, a layer between typed handles and the key-group rows: its settings and its stored form.

State with a time to live keeps pairs `(last access in ms, value)`: one per value, list element, map entry or
accumulator. The backend below keeps the pairs like any values, tracks their changes and writes them through a codec.
Time is processing time, read from the clock port, so the time while a job is down counts as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct
from struct import error as StructError
from typing import Any, Final

import msgspec
from msgspec import Raw

from rekindle.datastream.state import StateDescriptor, StateTtlConfig
from rekindle.errors import SerializationError
from rekindle.runtime.state.keyed_state_format import NONE_VALUE, StatePart, decoded
from rekindle.runtime.state.spec import Buffer, Codec, StateSpec
from rekindle.serde.type_schema import TypeSchema, decode_state_schema

#: (last access in ms, value)
Timed = tuple[int, Any]

# Entries that a sweep of state on disk checks at each access.
_SWEPT_ENTRIES: Final = 2
_STAMP: Final = Struct(">q")
_encode = msgspec.msgpack.Encoder().encode
_decode_columns = msgspec.msgpack.Decoder(tuple[list[int | None], Raw]).decode


@dataclass(frozen=True)
class TtlSettings:
    """The settings of a `StateTtlConfig`."""

    ttl_ms: int
    #: Whether reading starts the time anew, too.
    renews_on_read: bool
    #: Whether expired values are returned until they are removed.
    returns_expired: bool
    #: Entries to check at each access; 0: none.
    cleanup_size: int
    cleans_with_every_key: bool
    cleans_full_snapshots: bool

    @classmethod
    def of(cls, config: StateTtlConfig, on_disk: bool = False) -> TtlSettings:
        """The settings of an enabled configuration. State on disk is swept where Flink's RocksDB filters it."""
        strategies = config.get_cleanup_strategies()
        incremental = strategies.get_incremental_cleanup_strategy()
        sweeps = on_disk and strategies.get_rocksdb_compact_filter_cleanup_strategy() is not None
        return cls(
            ttl_ms=config.get_ttl().to_milliseconds(),
            renews_on_read=config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite,
            returns_expired=config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp,
            cleanup_size=incremental.get_cleanup_size() if incremental is not None else _SWEPT_ENTRIES * sweeps,
            cleans_with_every_key=incremental is not None and incremental.run_cleanup_for_every_record(),
            cleans_full_snapshots=strategies.in_full_snapshot(),
        )


def ttl_of(descriptor: StateDescriptor, on_disk: bool = False) -> TtlSettings | None:
    """The time to live of a descriptor; None if it has none or if it is disabled."""
    config = descriptor.get_ttl_config()
    return TtlSettings.of(config, on_disk) if config is not None and config.is_enabled() else None


class TimedCodec:
    """The codec of pairs: the timestamp, then the value by its own codec.

    >>> from rekindle.serde import value_codec_for
    >>> codec = TimedCodec(value_codec_for(None), now_ms=lambda: 0)
    >>> codec.decode(codec.encode((1700000000000, "paid")))
    (1700000000000, 'paid')
    """

    __slots__ = ("_now_ms", "_values")

    def __init__(self, values: Codec, now_ms: Callable[[], int]) -> None:
        self._values = values
        self._now_ms = now_ms

    @property
    def untimed(self) -> Codec:
        """The codec of the values without their timestamps."""
        return self._values

    @property
    def schema(self) -> TypeSchema:
        """The schema of the values, without their timestamps."""
        return self._values.schema

    def encode(self, timed: Timed, /) -> bytes:
        """Encode a pair; its value may be None."""
        stamp, value = timed
        return _STAMP.pack(stamp) + (NONE_VALUE if value is None else self._values.encode(value))

    def decode(self, data: bytes, /) -> Timed:
        """Decode the pair that `encode` wrote."""
        try:
            (stamp,) = _STAMP.unpack_from(data)
        except StructError as error:
            raise SerializationError(f"{len(data)} bytes are too few for a value with its timestamp") from error
        return stamp, decoded(data[_STAMP.size :], self._values)

    def encode_all(self, timed: list[Timed | None], /) -> bytes:
        """Encode many pairs as a column of timestamps and one of values; None stands for no pair."""
        stamps = [None if each is None else each[0] for each in timed]
        values = [None if each is None else each[1] for each in timed]
        return _encode((stamps, Raw(self._values.encode_all(values))))

    def decode_all(self, data: Buffer, /) -> list[Timed | None]:
        """Decode the pairs that `encode_all` wrote."""
        stamps, values = _decode_columns(data)
        pairs = zip(stamps, self._values.decode_all(values), strict=True)
        return [None if stamp is None else (stamp, value) for stamp, value in pairs]

    def adopter(self, none_is_a_value: bool) -> Callable[[Buffer], list[Timed | None]]:
        """A decoder for values that were saved without timestamps: their time begins now."""
        now, values = self._now_ms(), self._values
        return lambda data: [
            (now, value) if none_is_a_value or value is not None else None for value in values.decode_all(data)
        ]


def timed_spec(spec: StateSpec, ttl: TtlSettings, now_ms: Callable[[], int]) -> StateSpec:
    """The spec of a state of pairs."""
    return replace(
        spec,
        type_name=f"{spec.type_name} with time to live",
        fingerprint=f"ttl:{spec.fingerprint}",
        values=TimedCodec(spec.values, now_ms),
        ttl=ttl,
    )


def is_timed(part: StatePart) -> bool:
    """Whether a saved state's values have timestamps."""
    return decode_state_schema(part.schema).timed


def adopts(spec: StateSpec, part: StatePart) -> bool:
    """Whether a state with a time to live reads a part that was saved without one."""
    return spec.ttl is not None and not is_timed(part)


def reader(spec: StateSpec, part: StatePart) -> Callable[[Buffer], list[Any]]:
    """The decoder of a part's values, also if the state got or lost its time to live since it was saved."""
    values = spec.values
    if isinstance(values, TimedCodec):
        return values.decode_all if is_timed(part) else values.adopter(none_is_a_value=spec.kind.detailed)
    if is_timed(part):
        saved = TimedCodec(values, now_ms=lambda: 0)
        return lambda data: [None if timed is None else timed[1] for timed in saved.decode_all(data)]
    return values.decode_all
