"""The five state handles with a time to live, over handles that keep pairs `(last access in ms, value)`.

They know no backend: below a value, reducing or aggregating state is a value state of pairs, below a list a list of
pairs, below a map a map to pairs. So the handle below tracks every change that they make. As in Flink:

- a pair has expired if its last access is `ttl_ms` or longer ago;
- reading an expired value or map entry removes it; if expired values may be returned, it is returned this one time;
- reading a list skips its expired elements; they are removed once all have expired, or when reading renews the others;
- if expired values may be returned, `add` continues with an expired value; if not, it begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rekindle.datastream.state import AggregatingState, ListState, MapState, ReducingState, ValueState
from rekindle.runtime.state.handles import AggregateLike
from rekindle.runtime.state.ttl.expiry import Timed, TtlSettings

#: Called at each access: runs a step of the cleanup, if there is one, and returns the current time.
Access = Callable[[], int]


class _TtlCell:
    """The common part of value, reducing and aggregating state: one pair per key."""

    __slots__ = ("_access", "_cell", "_renews", "_returns_expired", "_ttl_ms")

    def __init__(self, cell: ValueState[Timed], ttl: TtlSettings, access: Access) -> None:
        self._cell = cell
        self._access = access
        self._ttl_ms = ttl.ttl_ms
        self._renews = ttl.renews_on_read
        self._returns_expired = ttl.returns_expired

    def _read(self) -> Any:
        """Read the value; remove it if it has expired, renew it if reading does that."""
        now = self._access()
        timed = self._cell.value()
        if timed is None:
            return None
        stamp, value = timed
        if stamp + self._ttl_ms <= now:
            self._cell.clear()
            return value if self._returns_expired else None
        if self._renews and stamp != now:
            self._cell.update((now, value))
        return value

    def _to_fold(self, now: int) -> Any:
        """The value that `add` continues with; None: it begins anew."""
        timed = self._cell.value()
        if timed is None or (timed[0] + self._ttl_ms <= now and not self._returns_expired):
            return None
        return timed[1]

    def _write(self, now: int, value: Any) -> None:
        if value is None:
            self._cell.clear()
        else:
            self._cell.update((now, value))

    def clear(self) -> None:
        """Remove the current key's value."""
        self._cell.clear()
        self._access()


class TtlValueState(_TtlCell, ValueState[Any]):
    """One value per key that expires."""

    __slots__ = ()

    def value(self) -> Any:
        """The current key's value, or None."""
        return self._read()

    def update(self, value: Any) -> None:
        """Set the current key's value; None clears it."""
        self._write(self._access(), value)


class TtlReducingState(_TtlCell, ReducingState[Any]):
    """One value per key, combined with each added one; it expires if none is added for the time to live."""

    __slots__ = ("_reduce",)

    def __init__(
        self, cell: ValueState[Timed], ttl: TtlSettings, access: Access, reduce: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__(cell, ttl, access)
        self._reduce = reduce

    def get(self) -> Any:
        """The reduced value of the current key, or None."""
        return self._read()

    def add(self, value: Any) -> None:
        """Combine a value into the current key's."""
        now = self._access()
        held = self._to_fold(now)
        self._write(now, value if held is None else self._reduce(held, value))


class TtlAggregatingState(_TtlCell, AggregatingState[Any, Any]):
    """One accumulator per key; it expires if no value is added for the time to live."""

    __slots__ = ("_aggregate",)

    def __init__(self, cell: ValueState[Timed], ttl: TtlSettings, access: Access, aggregate: AggregateLike) -> None:
        super().__init__(cell, ttl, access)
        self._aggregate = aggregate

    def get(self) -> Any:
        """The result for the current key, or None when nothing was added."""
        held = self._read()
        return None if held is None else self._aggregate.get_result(held)

    def add(self, value: Any) -> None:
        """Add a value to the current key's accumulator."""
        now = self._access()
        held = self._to_fold(now)
        if held is None:
            held = self._aggregate.create_accumulator()
        self._write(now, self._aggregate.add(value, held))

    def accumulator(self) -> Any:
        """The current key's accumulator, or None."""
        return self._to_fold(self._access())

    def merge(self, accumulator: Any) -> None:
        """Merge another accumulator, unless it is None, into the current key's."""
        if accumulator is None:
            return
        now = self._access()
        held = self._to_fold(now)
        self._write(now, accumulator if held is None else self._aggregate.merge(held, accumulator))


class TtlListState(ListState[Any]):
    """A list per key; each element expires on its own."""

    __slots__ = ("_access", "_renews", "_returns_expired", "_ttl_ms", "elements")

    def __init__(self, elements: ListState[Timed], ttl: TtlSettings, access: Access) -> None:
        #: The list below, of pairs.
        self.elements = elements
        self._access = access
        self._ttl_ms = ttl.ttl_ms
        self._renews = ttl.renews_on_read
        self._returns_expired = ttl.returns_expired

    def get(self) -> list[Any]:
        """A copy of the current key's list; empty when there is none."""
        now = self._access()
        held: list[Timed] = self.elements.get()  # type: ignore[assignment]
        last_expired = now - self._ttl_ms
        live = [timed for timed in held if timed[0] > last_expired]
        if held and not live:
            self.elements.clear()
        elif self._renews:
            if len(live) < len(held) or any(stamp != now for stamp, _ in live):
                self.elements.update([(now, value) for _, value in live])
        elif not self._returns_expired and 2 * len(live) < len(held):
            # Expired elements are never returned again, and the list may never expire as a whole.
            self.elements.update(live)
        return [value for _, value in (held if self._returns_expired else live)]

    def add(self, value: Any) -> None:
        """Append one element."""
        self.elements.add((self._access(), value))

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several elements."""
        now = self._access()
        self.elements.add_all([(now, value) for value in values])

    def update(self, values: Iterable[Any]) -> None:
        """Replace the list; an empty one clears it."""
        now = self._access()
        self.elements.update([(now, value) for value in values])

    def clear(self) -> None:
        """Remove the current key's list."""
        self.elements.clear()
        self._access()


class TtlMapState(MapState[Any, Any]):
    """A map per key; each entry expires on its own."""

    __slots__ = ("_access", "_entries", "_renews", "_returns_expired", "_ttl_ms")

    def __init__(self, entries: MapState[Any, Timed], ttl: TtlSettings, access: Access) -> None:
        self._entries = entries
        self._access = access
        self._ttl_ms = ttl.ttl_ms
        self._renews = ttl.renews_on_read
        self._returns_expired = ttl.returns_expired

    def _read(self, key: Any) -> Timed | None:
        now = self._access()
        timed = self._entries.get(key)
        if timed is None:
            return None
        stamp, value = timed
        if stamp + self._ttl_ms <= now:
            self._entries.remove(key)
            return timed if self._returns_expired else None
        if self._renews and stamp != now:
            self._entries.put(key, (now, value))
        return timed

    def get(self, key: Any) -> Any:
        """The value of an entry, or None."""
        timed = self._read(key)
        return None if timed is None else timed[1]

    def contains(self, key: Any) -> bool:
        """Whether there is such an entry; asking counts as reading."""
        return self._read(key) is not None

    def put(self, key: Any, value: Any) -> None:
        """Set an entry; None is a value like any other."""
        self._entries.put(key, (self._access(), value))

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Set several entries."""
        now = self._access()
        self._entries.put_all({key: (now, value) for key, value in dict(dict_value).items()})

    def remove(self, key: Any) -> None:
        """Remove an entry, if it is there."""
        self._access()
        self._entries.remove(key)

    def items(self) -> list[tuple[Any, Any]]:
        """The entries as they are now; all of them count as read."""
        now = self._access()
        last_expired = now - self._ttl_ms
        found = []
        for key, timed in self._entries.items():
            stamp, value = timed
            if stamp <= last_expired:
                self._entries.remove(key)
                if not self._returns_expired:
                    continue
            elif self._renews and stamp != now:
                self._entries.put(key, (now, value))
            found.append((key, value))
        return found

    def keys(self) -> list[Any]:
        """The keys as they are now: changing the map while iterating is safe."""
        return [key for key, _ in self.items()]

    def values(self) -> list[Any]:
        """The values as they are now."""
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        """Whether there is no entry that could be returned; asking is not reading."""
        now = self._access()
        if self._returns_expired:
            return self._entries.is_empty()
        last_expired = now - self._ttl_ms
        return all(stamp <= last_expired for stamp, _ in self._entries.values())

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._access()
