"""Rows that are read after the cut, on the uploading thread, while processing goes on.

Values of immutable types need no copy at the cut, only their references (I13), but to collect those of millions of rows
takes seconds: each is a walk through cold memory. So large captures are put off. The handles say `mark` before they
write a row for the first time since the cut; while a capture is put off, what the row held is kept then. Whoever
captures reads the rows first, and looks at what was kept afterwards: a value that was overwritten meanwhile has been
kept before.

This relies on Python's lock: reading a row, keeping a value and listing a dict's values are each one step.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from rekindle.errors import TypeMismatchError
from rekindle.runtime.state.changes import Row
from rekindle.runtime.state.immutable import all_immutable, is_immutable
from rekindle.runtime.state.spec import StateSpec

#: Fewer rows than this are read at once.
WORTHWHILE_ROWS: Final = 1024
#: So many are looked at, of a key group or of what changed, before the others are put off.
SAMPLE_ROWS: Final = 16

T = TypeVar("T")


class Overwritten:
    """What rows held at a cut, of those that were written since. Lives as long as a capture needs it."""

    __slots__ = ("__weakref__", "_before", "_waiting")

    def __init__(self) -> None:
        self._before: dict[int, dict[int, Any]] = {}
        self._waiting: list[weakref.ref[Deferred[Any]]] = []

    def keep(self, row: Row, place: int) -> None:
        """The row is about to be written; on the task's thread."""
        self._before.setdefault(place, {}).setdefault(id(row), row[place])

    def values_at_cut(self, rows: list[Row], place: int) -> list[Any]:
        """What the rows held at the cut; None where they held nothing."""
        values = [row[place] for row in rows]
        before = self._before.get(place)  # after the rows were read, not before
        if not before:
            return values
        return [before.get(id(row), value) for row, value in zip(rows, values, strict=True)]

    def put_off(self, work: Callable[[], T]) -> Deferred[T]:
        """Work that reads rows through this."""
        deferred = Deferred(work)
        self._waiting.append(weakref.ref(deferred))
        return deferred

    def finish(self) -> None:
        """Do now what was put off and is still wanted: the next cut begins anew."""
        for reference in self._waiting:
            deferred = reference()
            if deferred is not None:
                with suppress(TypeMismatchError):  # it is told to whoever uploads
                    deferred.result()


class Deferred(Generic[T]):
    """Work that is done once, by whoever comes first."""

    __slots__ = ("__weakref__", "_lock", "_result", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        self._lock = threading.Lock()
        self._work: Callable[[], T] | None = work
        self._result: T

    def result(self) -> T:
        """What the work gave."""
        with self._lock:
            if self._work is not None:
                self._result = self._work()
                self._work = None
            return self._result


def checked(spec: StateSpec, values: list[Any]) -> list[Any]:
    """The values, if none of them can have been changed since the cut."""
    if not all_immutable(values):
        wrong = next(value for value in values if not is_immutable(value))
        raise TypeMismatchError(
            f"State '{spec.name}' is declared as {spec.type_name}, but holds a {type(wrong).__name__}, which can be "
            "changed in place: store the declared type, or declare the one that is stored."
        )
    return values
