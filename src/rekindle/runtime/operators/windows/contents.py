"""What is kept of a window's elements: one reduced value, one accumulator, or the elements themselves.

Contents lie in the first column of a row. None is a value like any other there: a second column says that it is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.datastream.functions import AggregateFunction
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.datastream.windowing.operation import ContentsKind, WindowOperation
from rekindle.runtime.isolation import Isolate
from rekindle.runtime.state.changes import ROW_COLUMNS, WHOLE, Row
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.operators.stateless import method_or_callable

#: Where contents are in a row, and the mark beside them.
CONTENTS: Final = ROW_COLUMNS
CONTENTS_MARK: Final = CONTENTS + 1
_IS_NONE: Final = CONTENTS + 2
_IS_NONE_MARK: Final = _IS_NONE + 1


class Contents(ABC):
    """Reads and writes the contents of a row, whoever's turn it is."""

    def __init__(self, keyed: HashMapKeyedBackend) -> None:
        self._keyed = keyed

    @abstractmethod
    def add(self, row: Row, element: Any, timestamp: int) -> None:
        """One more element."""

    @abstractmethod
    def present(self, row: Row) -> bool:
        """Whether there are any contents."""

    @abstractmethod
    def evaluated(self, row: Row) -> list[Any]:
        """What a window function sees of contents that are present."""

    @abstractmethod
    def clear(self, row: Row) -> None:
        """Throw them away."""

    @abstractmethod
    def merge(self, target: Row, source: Row) -> None:
        """Move the contents of one row to those of another."""


class ValueContents(Contents):
    """One value."""

    def __init__(self, keyed: HashMapKeyedBackend, type_info: TypeInformation | None) -> None:
        super().__init__(keyed)
        keyed.value_state(ValueStateDescriptor("contents", type_info))
        keyed.value_state(ValueStateDescriptor("contents-none", Types.BOOLEAN()))

    def store(self, row: Row, value: Any) -> None:
        """Set the value; None is one, too."""
        self._set(row, CONTENTS, value)
        flag = True if value is None else None
        if row[_IS_NONE] is not flag:
            self._set(row, _IS_NONE, flag)

    def present(self, row: Row) -> bool:
        return row[CONTENTS] is not None or row[_IS_NONE] is not None

    def clear(self, row: Row) -> None:
        if self.present(row):
            self._set(row, CONTENTS, None)
            if row[_IS_NONE] is not None:
                self._set(row, _IS_NONE, None)
            self._keyed.note_emptied(row)

    def merge(self, target: Row, source: Row) -> None:
        if not self.present(source):
            return
        value = source[CONTENTS]
        self.clear(source)
        self.store(target, self.merged(target[CONTENTS], value) if self.present(target) else value)

    @abstractmethod
    def merged(self, held: Any, other: Any) -> Any:
        """Two values as one."""

    def _set(self, row: Row, column: int, value: Any) -> None:
        row[column] = value
        if row[column + 1] is not self._keyed.generation:
            self._keyed.mark(row, column + 1)


class ReducedContents(ValueContents):
    """The elements so far, combined by a reduce function."""

    def __init__(
        self,
        keyed: HashMapKeyedBackend,
        type_info: TypeInformation | None,
        reduce: Callable[[Any, Any], Any],
        isolate: Isolate | None,
    ) -> None:
        super().__init__(keyed, type_info)
        self.reduce = reduce
        self._isolate = isolate

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        if self.present(row):
            self.store(row, self.reduce(row[CONTENTS], element))
        else:
            self.store(row, element if self._isolate is None else self._isolate(element))

    def evaluated(self, row: Row) -> list[Any]:
        return [row[CONTENTS]]

    def merged(self, held: Any, other: Any) -> Any:
        return self.reduce(held, other)


class AggregatedContents(ValueContents):
    """The accumulator of an aggregate function."""

    def __init__(
        self, keyed: HashMapKeyedBackend, type_info: TypeInformation | None, function: AggregateFunction
    ) -> None:
        super().__init__(keyed, type_info)
        self.function = function

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        held = row[CONTENTS] if self.present(row) else self.function.create_accumulator()
        self.store(row, self.function.add(element, held))

    def evaluated(self, row: Row) -> list[Any]:
        return [self.function.get_result(row[CONTENTS])]

    def merged(self, held: Any, other: Any) -> Any:
        return self.function.merge(held, other)


class ElementContents(Contents):
    """All elements."""

    def __init__(
        self, keyed: HashMapKeyedBackend, type_info: TypeInformation | None, isolate: Isolate | None
    ) -> None:
        super().__init__(keyed)
        keyed.list_state(ListStateDescriptor("elements", type_info))
        self._isolate = isolate

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        self.append(row, element if self._isolate is None else self._isolate(element))

    def append(self, row: Row, element: Any) -> None:
        """One more element at the end; a delta writes only that."""
        held = row[CONTENTS]
        if held is None:
            self.replace(row, [element])
            return
        if row[CONTENTS_MARK] is None:
            self._keyed.mark_change(row, CONTENTS_MARK, len(held))
        held.append(element)

    def present(self, row: Row) -> bool:
        return row[CONTENTS] is not None

    def evaluated(self, row: Row) -> list[Any]:
        return list(row[CONTENTS])

    def clear(self, row: Row) -> None:
        if row[CONTENTS] is not None:
            self.replace(row, None)

    def merge(self, target: Row, source: Row) -> None:
        elements = source[CONTENTS]
        self.clear(source)
        for element in elements or ():
            self.append(target, element)

    def replace(self, row: Row, elements: list[Any] | None) -> None:
        """Other elements, or none."""
        row[CONTENTS] = elements or None
        if row[CONTENTS_MARK] is None:
            self._keyed.mark_change(row, CONTENTS_MARK, WHOLE)
        else:
            row[CONTENTS_MARK] = WHOLE
        if not elements:
            self._keyed.note_emptied(row)


class TimestampedContents(ElementContents):
    """All elements with their timestamps, as evictors want them: (timestamp, element)."""

    def __init__(
        self, keyed: HashMapKeyedBackend, type_info: TypeInformation | None, isolate: Isolate | None
    ) -> None:
        pair = None if type_info is None else Types.TUPLE([Types.LONG(), type_info])
        super().__init__(keyed, pair, isolate)

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        self.append(row, (timestamp, element if self._isolate is None else self._isolate(element)))


def contents_of(operation: WindowOperation, keyed: HashMapKeyedBackend, isolate: Isolate | None) -> Contents:
    """The contents that an operation asks for. They must be the first that is registered."""
    wanted, type_info = operation.contents, operation.stored_type()
    if operation.evictor is not None:
        return TimestampedContents(keyed, type_info, isolate)
    match wanted.kind:
        case ContentsKind.REDUCED:
            return ReducedContents(keyed, type_info, method_or_callable(wanted.function, "reduce"), isolate)
        case ContentsKind.AGGREGATED:
            assert isinstance(wanted.function, AggregateFunction)
            return AggregatedContents(keyed, type_info, wanted.function)
        case ContentsKind.ELEMENTS:
            return ElementContents(keyed, type_info, isolate)
