"""The contents of a window: one reduced value, one accumulator, or the elements themselves.

Contents lie in the first column of a row. There None is a value like any other: a second column tells it from no value.

A row that a fast operator has just made is *young*: the backend does not know it, and never will if the window is
cleaned up before the next snapshot. Otherwise `adopt` moves its contents to a row of the backend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypeVar

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.datastream.functions import AggregateFunction
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.datastream.windowing.operation import ContentsKind, WindowOperation
from rekindle.runtime.copy_on_emit import Isolate
from rekindle.runtime.operators.stateless import method_or_callable
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import ROW_COLUMNS, ROW_KEY, WHOLE, Row
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.handles import AggregateLike
from rekindle.runtime.state.named_rows import shaped_aggregate, shaped_reduce

T = TypeVar("T")

#: The columns of the contents and of their change mark.
CONTENTS: Final = ROW_COLUMNS
CONTENTS_MARK: Final = CONTENTS + 1
_IS_NONE: Final = CONTENTS + 2


class _Young:
    """The change mark of a young row."""


YOUNG: Final = _Young()


def is_young(row: Row) -> bool:
    """Whether the backend does not know the row."""
    return row[ROW_KEY] is None


class Contents(ABC):
    """Reads and writes the contents of any row."""

    def __init__(self, keyed: KeyedStateBackend) -> None:
        self._keyed = keyed

    def young(self, element: Any, timestamp: int) -> Row:
        """Return a young row with the first element of a window."""
        row: Row = [None, None, None, YOUNG, None, YOUNG]
        self.add(row, element, timestamp)
        return row

    def adopt(self, young: Row, key: Any, namespace: Any) -> Row:
        """Move the contents of a young row to a row of the backend, and return that row."""
        row = self._keyed.load_row((key, namespace))
        self.put(row, self.raw(young))
        return row

    @abstractmethod
    def add(self, row: Row, element: Any, timestamp: int) -> None:
        """Add an element."""

    @abstractmethod
    def present(self, row: Row) -> bool:
        """Whether the row has contents."""

    def raw(self, row: Row) -> Any:
        """Return the contents of a row as they are stored; the row must have some."""
        return row[CONTENTS]

    @abstractmethod
    def put(self, row: Row, raw: Any) -> None:
        """Replace the contents."""

    @abstractmethod
    def evaluated(self, row: Row) -> list[Any]:
        """Return the contents as the window function sees them; the row must have some."""

    @abstractmethod
    def clear(self, row: Row) -> None:
        """Remove the contents."""

    @abstractmethod
    def merge(self, target: Row, raw: Any) -> None:
        """Add the contents of another row."""


class ValueContents(Contents):
    """Contents of one value."""

    #: (element, value) -> the next value.
    combine: Callable[[Any, Any], Any]

    def __init__(self, keyed: KeyedStateBackend, type_info: TypeInformation | None) -> None:
        super().__init__(keyed)
        keyed_state(keyed, reserved(ValueStateDescriptor("window-contents", type_info)))
        keyed_state(keyed, reserved(ValueStateDescriptor("window-contents-is-none", Types.BOOLEAN())))

    @abstractmethod
    def first(self, element: Any) -> Any:
        """Return the value of the first element."""

    @abstractmethod
    def result(self, value: Any) -> Any:
        """Return the result of a value."""

    @abstractmethod
    def merged(self, value: Any, other: Any) -> Any:
        """Merge two values."""

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        value = self.combine(element, row[CONTENTS]) if self.present(row) else self.first(element)
        self.put(row, value)

    def put(self, row: Row, raw: Any) -> None:
        self._set(row, CONTENTS, raw)
        flag = True if raw is None else None
        if row[_IS_NONE] is not flag:
            self._set(row, _IS_NONE, flag)

    def present(self, row: Row) -> bool:
        return row[CONTENTS] is not None or row[_IS_NONE] is not None

    def evaluated(self, row: Row) -> list[Any]:
        return [self.result(row[CONTENTS])]

    def clear(self, row: Row) -> None:
        if self.present(row):
            self._set(row, CONTENTS, None)
            if row[_IS_NONE] is not None:
                self._set(row, _IS_NONE, None)
            self._keyed.note_emptied(row)

    def merge(self, target: Row, raw: Any) -> None:
        self.put(target, self.merged(target[CONTENTS], raw) if self.present(target) else raw)

    def _set(self, row: Row, column: int, value: Any) -> None:
        row[column] = value
        mark = row[column + 1]
        if mark is not self._keyed.generation and mark is not YOUNG:
            self._keyed.mark(row, column + 1)


class ReducedContents(ValueContents):
    """The elements so far, combined by a reduce function."""

    def __init__(
        self,
        keyed: KeyedStateBackend,
        type_info: TypeInformation | None,
        reduce: Callable[[Any, Any], Any],
        isolate: Isolate | None,
    ) -> None:
        super().__init__(keyed, type_info)
        self._reduce = reduce
        self.combine = lambda element, value: reduce(value, element)
        self._isolate = isolate

    def first(self, element: Any) -> Any:
        return element if self._isolate is None else self._isolate(element)

    def result(self, value: Any) -> Any:
        return value

    def merged(self, value: Any, other: Any) -> Any:
        return self._reduce(value, other)


class AggregatedContents(ValueContents):
    """The accumulator of an aggregate function."""

    def __init__(self, keyed: KeyedStateBackend, type_info: TypeInformation | None, function: AggregateLike) -> None:
        super().__init__(keyed, type_info)
        self._function = function
        self.combine = function.add

    def first(self, element: Any) -> Any:
        return self._function.add(element, self._function.create_accumulator())

    def result(self, value: Any) -> Any:
        return self._function.get_result(value)

    def merged(self, value: Any, other: Any) -> Any:
        return self._function.merge(value, other)


class ElementContents(Contents):
    """All elements of a window."""

    def __init__(self, keyed: KeyedStateBackend, type_info: TypeInformation | None, isolate: Isolate | None) -> None:
        super().__init__(keyed)
        self._elements = keyed_state(keyed, reserved(ListStateDescriptor("window-elements", type_info)))
        self._isolate = isolate

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        self._append(row, element if self._isolate is None else self._isolate(element))

    def _append(self, row: Row, element: Any) -> None:
        held = row[CONTENTS]
        if held is None:
            self.put(row, [element])
            return
        if row[CONTENTS_MARK] is None:
            self._keyed.mark_change(row, CONTENTS_MARK, len(held))
        held.append(element)

    def put(self, row: Row, raw: Any) -> None:
        row[CONTENTS] = raw
        mark = row[CONTENTS_MARK]
        if mark is None:
            self._keyed.mark_change(row, CONTENTS_MARK, WHOLE)
        elif mark is not YOUNG:
            row[CONTENTS_MARK] = WHOLE

    def present(self, row: Row) -> bool:
        return row[CONTENTS] is not None

    def evaluated(self, row: Row) -> list[Any]:
        return list(row[CONTENTS])

    def clear(self, row: Row) -> None:
        if row[CONTENTS] is not None:
            self.put(row, None)
            self._keyed.note_emptied(row)

    def merge(self, target: Row, raw: Any) -> None:
        for element in raw:
            self._append(target, element)


class StoredElementContents(ElementContents):
    """All elements of a window whose list is not in the row: they are reached through the handle of their state."""

    def _append(self, row: Row, element: Any) -> None:
        self._at(row, self._elements.add, element)

    def raw(self, row: Row) -> Any:
        return self._at(row, self._elements.get)

    def put(self, row: Row, raw: Any) -> None:
        self._at(row, self._elements.update, raw or [])

    def present(self, row: Row) -> bool:
        return row[CONTENTS] is not None and len(row[CONTENTS]) > 0

    def evaluated(self, row: Row) -> list[Any]:
        return list(self.raw(row))

    def clear(self, row: Row) -> None:
        self._at(row, self._elements.clear)

    def _at(self, row: Row, method: Callable[..., T], *arguments: Any) -> T:
        keyed = self._keyed
        current, keyed.row = keyed.row, row
        try:
            return method(*arguments)
        finally:
            keyed.row = current


class TimestampedContents(ElementContents):
    """All elements as (timestamp, element), for evictors."""

    def __init__(self, keyed: KeyedStateBackend, type_info: TypeInformation | None, isolate: Isolate | None) -> None:
        pair = None if type_info is None else Types.TUPLE([Types.LONG(), type_info])
        super().__init__(keyed, pair, isolate)

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        self._append(row, (timestamp, element if self._isolate is None else self._isolate(element)))


class StoredTimestampedContents(TimestampedContents, StoredElementContents):
    """All elements as (timestamp, element), where lists are not in the row."""


def contents_of(operation: WindowOperation, keyed: KeyedStateBackend, isolate: Isolate | None) -> Contents:
    """Return the contents of an operation. They must be the first state that is registered: their columns are fixed."""
    wanted, type_info = operation.contents, operation.stored_type()
    shape = None if type_info is None else type_info.shaper()
    on_disk = not keyed.in_memory
    if operation.evictor is not None:
        return (StoredTimestampedContents if on_disk else TimestampedContents)(keyed, type_info, isolate)
    match wanted.kind:
        case ContentsKind.REDUCED:
            reduce = shaped_reduce(shape, method_or_callable(wanted.function, "reduce"))
            return ReducedContents(keyed, type_info, reduce, isolate)
        case ContentsKind.AGGREGATED:
            assert isinstance(wanted.function, AggregateFunction)
            return AggregatedContents(keyed, type_info, shaped_aggregate(shape, wanted.function))
        case ContentsKind.ELEMENTS:
            return (StoredElementContents if on_disk else ElementContents)(keyed, type_info, isolate)
