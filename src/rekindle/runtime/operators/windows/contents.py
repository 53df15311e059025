"""The contents of a window: one reduced value, one accumulator, or the elements themselves.

Contents lie in the first column of a row. There None is a value like any other: a second column tells it from no value.
`adopt` moves the contents of a young row (`row_columns.py`) to a row of the backend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.datastream.functions import AggregateFunction
from rekindle.datastream.state import ListState, ListStateDescriptor, ValueStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.datastream.windowing.operation import ContentsKind, WindowOperation
from rekindle.runtime.copy_on_emit import Isolate
from rekindle.runtime.operators.stateless import method_or_callable
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.handles import AggregateLike
from rekindle.runtime.state.named_rows import shaped_aggregate, shaped_reduce
from rekindle.runtime.state.row_columns import ValueColumn, young_row
from rekindle.runtime.state.spec import list_spec, value_spec

#: The contents, and whether they are None.
_COLUMNS: Final = 2


class Contents(ABC):
    """Reads and writes the contents of any row."""

    def __init__(self, keyed: KeyedStateBackend) -> None:
        self._keyed = keyed

    def young(self, element: Any, timestamp: int) -> Row:
        """Return a young row with the first element of a window."""
        row = young_row(_COLUMNS)
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

    @abstractmethod
    def raw(self, row: Row) -> Any:
        """Return the contents of a row as they are stored; the row must have some."""

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
        self.column = _value_column(keyed, "window-contents", type_info)
        self._is_none = _value_column(keyed, "window-contents-is-none", Types.BOOLEAN())

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
        value = self.combine(element, self.column.get(row)) if self.present(row) else self.first(element)
        self.put(row, value)

    def raw(self, row: Row) -> Any:
        return self.column.get(row)

    def put(self, row: Row, raw: Any) -> None:
        self.column.set(row, raw)
        flag = True if raw is None else None
        if self._is_none.get(row) is not flag:
            self._is_none.set(row, flag)

    def present(self, row: Row) -> bool:
        return self.column.get(row) is not None or self._is_none.get(row) is not None

    def evaluated(self, row: Row) -> list[Any]:
        return [self.result(self.column.get(row))]

    def clear(self, row: Row) -> None:
        self.column.remove(row)
        self._is_none.remove(row)

    def merge(self, target: Row, raw: Any) -> None:
        self.put(target, self.merged(self.column.get(target), raw) if self.present(target) else raw)


def _value_column(keyed: KeyedStateBackend, name: str, type_info: TypeInformation | None) -> ValueColumn:
    descriptor = reserved(ValueStateDescriptor(name, type_info))
    return ValueColumn(keyed, value_spec(descriptor, keyed.options.allow_pickle))


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
        self._isolate = isolate
        descriptor = reserved(ListStateDescriptor("window-elements", type_info))
        keyed.register(list_spec(descriptor, keyed.options.allow_pickle), self._handle_at)

    def _handle_at(self, place: int) -> ListState[Any]:
        elements = self._keyed.list_column(place)
        self._elements, self._append = elements, elements.append
        return self._keyed.list_handle(place)

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        self._append(row, element if self._isolate is None else self._isolate(element))

    def present(self, row: Row) -> bool:
        return self._elements.present(row)

    def raw(self, row: Row) -> list[Any]:
        return self._elements.get(row)

    def put(self, row: Row, raw: list[Any]) -> None:
        self._elements.put(row, raw)

    def evaluated(self, row: Row) -> list[Any]:
        return list(self._elements.get(row))

    def clear(self, row: Row) -> None:
        self._elements.remove(row)

    def merge(self, target: Row, raw: Any) -> None:
        for element in raw:
            self._append(target, element)


class TimestampedContents(ElementContents):
    """All elements as (timestamp, element), for evictors."""

    def __init__(self, keyed: KeyedStateBackend, type_info: TypeInformation | None, isolate: Isolate | None) -> None:
        pair = None if type_info is None else Types.TUPLE([Types.LONG(), type_info])
        super().__init__(keyed, pair, isolate)

    def add(self, row: Row, element: Any, timestamp: int) -> None:
        self._append(row, (timestamp, element if self._isolate is None else self._isolate(element)))


def contents_of(operation: WindowOperation, keyed: KeyedStateBackend, isolate: Isolate | None) -> Contents:
    """Return the contents of an operation. They must be the first state that is registered: their columns are fixed."""
    wanted, type_info = operation.contents, operation.stored_type()
    shape = None if type_info is None else type_info.shaper()
    if operation.evictor is not None:
        return TimestampedContents(keyed, type_info, isolate)
    match wanted.kind:
        case ContentsKind.REDUCED:
            reduce = shaped_reduce(shape, method_or_callable(wanted.function, "reduce"))
            return ReducedContents(keyed, type_info, reduce, isolate)
        case ContentsKind.AGGREGATED:
            assert isinstance(wanted.function, AggregateFunction)
            return AggregatedContents(keyed, type_info, shaped_aggregate(shape, wanted.function))
        case ContentsKind.ELEMENTS:
            return ElementContents(keyed, type_info, isolate)
