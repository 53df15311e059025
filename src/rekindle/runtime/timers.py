"""Timers of one operator in one subtask: one per key, namespace, time and domain; due ones come in order.

Timers are kept in buckets by time, the distinct times in a heap. Those of one time fire by their key's canonical bytes
(I1), which are computed only when they fire: registering costs two dict operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Final

import msgspec

from rekindle.errors import SerializationError
from rekindle.runtime.key_groups import key_group
from rekindle.runtime.keys import canonical_bytes
from rekindle.runtime.state.spec import Codec
from rekindle.serde import value_codec_for

FORMAT_VERSION: Final = 1
_STALE_ALLOWED: Final = 64


# (time, key, namespace)
Timer = tuple[int, Any, Any]
# (key, namespace) in order of registration; the values mean nothing.
_Bucket = dict[tuple[Any, Any], None]


class TimerQueue:
    """Timers of one domain."""

    __slots__ = ("_buckets", "_heap")

    def __init__(self) -> None:
        self._buckets: dict[int, _Bucket] = {}
        # Every time in `_buckets` that is not being fired just now, and times whose bucket is gone.
        self._heap: list[int] = []

    def register(self, time: int, key: Any, namespace: Any = None) -> None:
        """Set a timer; the same one again changes nothing."""
        bucket = self._buckets.get(time)
        if bucket is None:
            bucket = self._buckets[time] = {}
            heappush(self._heap, time)
        bucket[key, namespace] = None

    def delete(self, time: int, key: Any, namespace: Any = None) -> None:
        """Remove a timer, if it is there."""
        bucket = self._buckets.get(time)
        if bucket is None or (key, namespace) not in bucket:
            return
        del bucket[key, namespace]
        if not bucket:
            del self._buckets[time]
            if len(self._heap) > 2 * len(self._buckets) + _STALE_ALLOWED:
                self._heap = list(self._buckets)
                heapify(self._heap)

    def next_time(self) -> int | None:
        """The time of the first timer."""
        heap = self._heap
        while heap and heap[0] not in self._buckets:
            heappop(heap)
        return heap[0] if heap else None

    def due(self, limit: int) -> Iterator[Timer]:
        """Remove and yield what is due at `limit`, by (time, key bytes).

        Whoever handles a timer may set and delete others meanwhile: one that is due at `limit` too comes in this very
        round, an earlier one before what is left of the current time.
        """
        firing: list[tuple[int, _Bucket, list[tuple[Any, Any]]]] = []
        try:
            while True:
                first = self.next_time()
                if first is not None and first <= limit and (not firing or first < firing[-1][0]):
                    heappop(self._heap)
                    bucket = self._buckets[first]
                    firing.append((first, bucket, _last_to_first(bucket)))
                if not firing:
                    return
                time, bucket, waiting = firing[-1]
                if waiting:
                    entry = waiting.pop()
                    if entry in bucket:
                        del bucket[entry]
                        yield time, entry[0], entry[1]
                elif bucket:
                    waiting.extend(_last_to_first(bucket))
                else:
                    firing.pop()
                    if self._buckets.get(time) is bucket:
                        del self._buckets[time]
        finally:
            for time, bucket, _ in firing:
                if self._buckets.get(time) is bucket:
                    heappush(self._heap, time)

    def all(self) -> Iterator[Timer]:
        """Every timer, in no order."""
        for time, bucket in self._buckets.items():
            for key, namespace in bucket:
                yield time, key, namespace

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))


def _last_to_first(bucket: _Bucket) -> list[tuple[Any, Any]]:
    if len(bucket) == 1:
        return list(bucket)
    return sorted(bucket, key=_order, reverse=True)


def _order(entry: tuple[Any, Any]) -> tuple[bytes, bytes]:
    key, namespace = entry
    return canonical_bytes(key), canonical_bytes(namespace)


class TimerPart(msgspec.Struct, array_like=True, frozen=True):
    """The timers of one key group: keys and namespaces once, timers as (time, place of key, place of namespace)."""

    version: int
    keys: list[bytes]
    namespaces: list[bytes]
    event: list[tuple[int, int, int]]
    processing: list[tuple[int, int, int]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TimerPart).decode


class InternalTimers:
    """Event-time and processing-time timers of one operator in one subtask."""

    def __init__(
        self,
        max_parallelism: int,
        key_groups: range,
        *,
        key_codec: Codec | None = None,
        namespace_codec: Codec | None = None,
        allow_pickle: bool = True,
    ) -> None:
        """The codecs write keys and namespaces so that they can be read again: by default tagged."""
        self.event = TimerQueue()
        self.processing = TimerQueue()
        self.key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._key_codec = key_codec or value_codec_for(None, allow_pickle=allow_pickle)
        self._namespace_codec = namespace_codec or value_codec_for(None, allow_pickle=allow_pickle)
        # Bound once: these are called per record.
        self.register_event_time: Callable[..., None] = self.event.register
        self.delete_event_time: Callable[..., None] = self.event.delete
        self.register_processing_time: Callable[..., None] = self.processing.register
        self.delete_processing_time: Callable[..., None] = self.processing.delete

    def advance_watermark(self, watermark: int) -> Iterator[Timer]:
        """Event-time timers at or before the watermark, in order, removed as they come."""
        return self.event.due(watermark)

    def due_processing_time(self, now: int) -> Iterator[Timer]:
        """Processing-time timers at or before `now`, in order, removed as they come."""
        return self.processing.due(now)

    def next_event_time(self) -> int | None:
        """The time of the first event-time timer."""
        return self.event.next_time()

    def next_processing_time(self) -> int | None:
        """The time of the first processing-time timer."""
        return self.processing.next_time()

    def snapshot(self) -> TimerSnapshot:
        """All timers at the cut; keys are immutable, so references are enough (I13)."""
        return TimerSnapshot(
            list(self.event.all()),
            list(self.processing.all()),
            self._max_parallelism,
            self._key_codec,
            self._namespace_codec,
        )

    def restore(self, parts: Iterable[tuple[int, bytes]]) -> None:
        """Load (key group, part); those of key groups that this subtask does not own are skipped."""
        for group, data in parts:
            if group not in self.key_groups:
                continue
            part = _decoded_part(group, data)
            keys = list(map(self._key_codec.decode, part.keys))
            namespaces = list(map(self._namespace_codec.decode, part.namespaces))
            for queue, timers in ((self.event, part.event), (self.processing, part.processing)):
                for time, key_place, namespace_place in timers:
                    queue.register(time, keys[key_place], namespaces[namespace_place])


class TimerSnapshot:
    """Timers at a cut; `encode` may run on another thread while processing goes on."""

    def __init__(
        self,
        event: list[Timer],
        processing: list[Timer],
        max_parallelism: int,
        key_codec: Codec,
        namespace_codec: Codec,
    ) -> None:
        self._event = event
        self._processing = processing
        self._max_parallelism = max_parallelism
        self._key_codec = key_codec
        self._namespace_codec = namespace_codec

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """(key group, part), ready for the store; key groups without timers have none."""
        groups: dict[int, tuple[list[Timer], list[Timer]]] = {}
        for domain, timers in enumerate((self._event, self._processing)):
            for timer in timers:
                group = key_group(timer[1], self._max_parallelism)
                groups.setdefault(group, ([], []))[domain].append(timer)
        for group in sorted(groups):
            yield group, self._encode_group(*groups[group])

    def _encode_group(self, event: list[Timer], processing: list[Timer]) -> bytes:
        keys: dict[Any, int] = {}
        namespaces: dict[Any, int] = {}

        def places(timers: list[Timer]) -> list[tuple[int, int, int]]:
            return [
                (time, keys.setdefault(key, len(keys)), namespaces.setdefault(namespace, len(namespaces)))
                for time, key, namespace in timers
            ]

        event_places, processing_places = places(event), places(processing)
        return _encode(
            TimerPart(
                FORMAT_VERSION,
                list(map(self._key_codec.encode, keys)),
                list(map(self._namespace_codec.encode, namespaces)),
                event_places,
                processing_places,
            )
        )


def _decoded_part(group: int, data: bytes) -> TimerPart:
    try:
        part = _decode(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"The timers of key group {group} are damaged: {error}") from error
    if part.version != FORMAT_VERSION:
        raise SerializationError(
            f"The timers of key group {group} have format {part.version}; this version of Rekindle reads "
            f"{FORMAT_VERSION}: use the version that wrote it."
        )
    return part
