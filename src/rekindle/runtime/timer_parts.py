"""The format of timers, one part per key group, and their changes since the last completed snapshot (I12).

A part is a log, like the parts of keyed state: a full part holds all timers, a delta's part holds the timers that were
set and removed since its base snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from rekindle.errors import SerializationError
from rekindle.runtime.key_bytes import owned_key
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.state.evolution import evolved_keys
from rekindle.runtime.state.spec import Codec
from rekindle.serde.type_schema import encode_schema

#: Bound on the kept changes: so many, plus twice the number of timers.
CHANGES_ALLOWED: Final = 1 << 16

# (time, key, namespace)
Timer = tuple[int, Any, Any]
Segment = TypeVar("Segment")


class TimerColumns(msgspec.Struct, array_like=True, frozen=True):
    """Timers as columns: their times, and the indexes of their keys and namespaces in the part's arrays."""

    times: list[int] = []
    keys: list[int] = []
    namespaces: list[int] = []


class TimerPart(msgspec.Struct, array_like=True, frozen=True):
    """One snapshot's part of the timers of one key group; each key and namespace is in it once."""

    #: What the keys were written with (`type_schema.decode_schema`).
    key_schema: bytes
    keys: msgspec.Raw
    namespaces: msgspec.Raw
    event: TimerColumns
    processing: TimerColumns
    removed_event: TimerColumns = TimerColumns()
    removed_processing: TimerColumns = TimerColumns()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TimerPart).decode


class TimersOfGroup:
    """The decoded timers of a part."""

    __slots__ = ("event", "processing", "removed_event", "removed_processing")

    def __init__(self, part: TimerPart, key_codec: Codec, namespace_codec: Codec, allow_pickle: bool) -> None:
        keys = key_codec.decode_all(evolved_keys(part.keys, part.key_schema, key_codec, allow_pickle))
        namespaces = namespace_codec.decode_all(part.namespaces)

        def timers(columns: TimerColumns) -> Iterator[Timer]:
            own_keys = map(keys.__getitem__, columns.keys)
            own_namespaces = map(namespaces.__getitem__, columns.namespaces)
            return zip(columns.times, own_keys, own_namespaces, strict=True)

        self.event = timers(part.event)
        self.processing = timers(part.processing)
        self.removed_event = timers(part.removed_event)
        self.removed_processing = timers(part.removed_processing)


def timer_part(group: int, data: bytes) -> TimerPart:
    """Decode a part; its keys and namespaces stay encoded. SerializationError if it is damaged."""
    try:
        return _decode(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"The timers of key group {group} are damaged: {error}") from error


def decode_timers(
    group: int, data: bytes, key_codec: Codec, namespace_codec: Codec, *, allow_pickle: bool = False
) -> TimersOfGroup:
    """Decode the timers of a part."""
    return TimersOfGroup(timer_part(group, data), key_codec, namespace_codec, allow_pickle)


class TimerLists(NamedTuple):
    """Timers to capture: those that are set, and for a delta those that are gone."""

    event: Iterable[Timer]
    processing: Iterable[Timer]
    removed_event: Iterable[Timer] = ()
    removed_processing: Iterable[Timer] = ()


class CapturedTimers:
    """Timers captured at a cut; `encode` may run on another thread while processing goes on."""

    def __init__(
        self,
        timers: TimerLists,
        max_parallelism: int,
        key_codec: Codec,
        namespace_codec: Codec,
        also: Collection[int] = (),
    ) -> None:
        """`also`: key groups that get a part even without timers, because it replaces stored ones."""
        self._kinds = timers
        self._max_parallelism = max_parallelism
        self._key_codec = key_codec
        self._namespace_codec = namespace_codec
        self._also = also
        self._key_schema = encode_schema(key_codec.schema)

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; key groups without timers get none."""
        groups: dict[int, tuple[list[Timer], ...]] = {group: ([], [], [], []) for group in self._also}
        for kind, timers in enumerate(self._kinds):
            for timer in timers:
                group = key_group(timer[1], self._max_parallelism)
                own = groups.get(group)
                if own is None:
                    own = groups[group] = ([], [], [], [])
                own[kind].append(timer)
        for group in sorted(groups):
            yield group, self._encode_group(groups.pop(group))

    def _encode_group(self, kinds: tuple[list[Timer], ...]) -> bytes:
        keys: dict[Any, int] = {}
        namespaces: dict[Any, int] = {}

        def columns(timers: list[Timer]) -> TimerColumns:
            return TimerColumns(
                [timer[0] for timer in timers],
                [keys.setdefault(timer[1], len(keys)) for timer in timers],
                [namespaces.setdefault(timer[2], len(namespaces)) for timer in timers],
            )

        event, processing, removed_event, removed_processing = map(columns, kinds)
        part = TimerPart(
            self._key_schema,
            msgspec.Raw(self._key_codec.encode_all(list(map(owned_key, keys)))),
            msgspec.Raw(self._namespace_codec.encode_all(list(namespaces))),
            event,
            processing,
            removed_event,
            removed_processing,
        )
        return _encode(part)


class TimerChanges(Generic[Segment]):
    """The timers of one domain that were set, deleted or fired since the last completed snapshot.

    They are tracked from a restore or a whole snapshot on, in a segment for each cut: timer -> whether it is set. If
    far more timers change than there are, a delta would be larger than a whole snapshot: tracking is given up until the
    next whole snapshot.
    """

    __slots__ = ("_joined", "_known_since", "_new_segment", "_sealed", "open")

    def __init__(self, new_segment: Callable[[], Segment], joined: Callable[[Segment, Segment], Segment]) -> None:
        """`joined` makes one segment of two; whoever reads these does so as before."""
        #: The changes since the last cut; None while they are not tracked. The queue that adds to it bounds it.
        self.open: Segment | None = None
        self._new_segment = new_segment
        self._joined = joined
        self._sealed: list[tuple[int, Segment]] = []
        # Deltas are possible on top of this snapshot and of later ones; None: of none.
        self._known_since: int | None = None

    def restored(self) -> None:
        """Track changes from a restore on: the restored snapshot is the next one's base."""
        self.open = self._new_segment()
        self._known_since = 0

    def reaches(self, since: int) -> bool:
        """Whether all changes since that completed snapshot were tracked."""
        return self.open is not None and self._known_since is not None and self._known_since <= since

    def cut(self, snapshot_id: int, since: int | None, whole: bool) -> list[Segment]:
        """Seal the open segment; return the segments since the completed snapshot.

        `whole`: the snapshot holds all timers, so later deltas can build on it even if tracking was given up before.
        """
        if since is not None:
            self.completed(since)
        if self.open is not None:
            self._sealed.append((snapshot_id, self.open))
            self.open = self._new_segment()
        elif whole:
            self._known_since = snapshot_id
            self.open = self._new_segment()
        return [segment for _, segment in self._sealed]

    def completed(self, snapshot_id: int) -> None:
        """Drop the segments of a completed snapshot and of older ones."""
        self._sealed = [(sealed, segment) for sealed, segment in self._sealed if sealed > snapshot_id]

    def aborted(self, snapshot_id: int) -> None:
        """Move an aborted snapshot's changes to the next one."""
        for place, (sealed, segment) in enumerate(self._sealed):
            if sealed == snapshot_id:
                del self._sealed[place]
                if place < len(self._sealed):
                    later_id, later = self._sealed[place]
                    self._sealed[place] = later_id, self._joined(segment, later)
                elif self.open is not None:
                    self.open = self._joined(segment, self.open)
                return

    def give_up(self) -> None:
        """Stop tracking, and drop all changes."""
        self.open = None
        self._sealed.clear()
        self._known_since = None
