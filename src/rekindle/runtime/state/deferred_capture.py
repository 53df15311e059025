"""Deferred reads: rows are read after the cut, on the uploading thread, while processing goes on.

Values of immutable types need no copy at the cut, only references (I13). But collecting the references of millions of
rows takes seconds: each row is a walk through cold memory. So large captures are deferred, with copy-on-write: handles
call `mark` before they write a row for the first time since the cut, and `mark` keeps the old value while a capture is
deferred. The capture reads the rows first and the kept values afterwards: a value that was overwritten meanwhile was
kept before.

This relies on Python's lock: reading a row, keeping a value and listing a dict's values are each atomic.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from rekindle.errors import TypeMismatchError
from rekindle.runtime.immutability import all_immutable, is_immutable
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.spec import StateSpec

#: Fewer rows than this are read at the cut.
WORTHWHILE_ROWS: Final = 1024
#: So many rows of a key group, or of the changed rows, are checked before the rest is deferred.
SAMPLE_ROWS: Final = 16

T = TypeVar("T")


class Overwritten:
    """The copy-on-write buffer of a cut: old values of rows that were written since. Deferred work keeps it alive."""

    __slots__ = ("__weakref__", "_before", "_waiting")

    def __init__(self) -> None:
        self._before: dict[int, dict[int, Any]] = {}
        self._waiting: list[weakref.ref[Deferred[Any]]] = []

    def keep(self, row: Row, place: int) -> None:
        """Keep a row's value before it is overwritten; on the task's thread."""
        self._before.setdefault(place, {}).setdefault(id(row), row[place])

    def values_at_cut(self, rows: list[Row], place: int) -> list[Any]:
        """The values of the rows at the cut; None where a row had none."""
        values = [row[place] for row in rows]
        before = self._before.get(place)  # must come after the rows were read
        if not before:
            return values
        return [before.get(id(row), value) for row, value in zip(rows, values, strict=True)]

    def defer(self, work: Callable[[], T]) -> Deferred[T]:
        """Defer work that reads rows through this buffer."""
        deferred = Deferred(work)
        self._waiting.append(weakref.ref(deferred))
        return deferred

    def finish(self) -> None:
        """Do all deferred work that is still wanted now, before the next cut."""
        for reference in self._waiting:
            deferred = reference()
            if deferred is not None:
                with suppress(TypeMismatchError):  # the upload raises it again
                    deferred.result()


class Deferred(Generic[T]):
    """Work that is done once, by the first thread that asks for its result."""

    __slots__ = ("__weakref__", "_lock", "_result", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        self._lock = threading.Lock()
        self._work: Callable[[], T] | None = work
        self._result: T

    def result(self) -> T:
        """The result of the work; does the work first if necessary."""
        with self._lock:
            if self._work is not None:
                self._result = self._work()
                self._work = None
            return self._result


def checked(spec: StateSpec, values: list[Any]) -> list[Any]:
    """Return the values; TypeMismatchError if one of them may have changed since the cut."""
    if not all_immutable(values):
        wrong = next(value for value in values if not is_immutable(value))
        raise TypeMismatchError(
            f"State '{spec.name}' is declared as {spec.type_name}, but holds a {type(wrong).__name__}, which can be "
            "changed in place: store the declared type, or declare the one that is stored."
        )
    return values
