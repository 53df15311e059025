"""`Row`, a record of fields with or without names, and `RowKind`, its kind in a changelog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache
from typing import Any

from rekindle.serde.tagged_codec import register_value_type

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """The kind of change that a row stands for in a changelog.

    >>> str(RowKind.UPDATE_BEFORE)
    '-U'
    """

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return ("+I", "-U", "+U", "-D")[self.value]


ROW_KINDS = tuple(RowKind)


class Row:
    """A row of values, with or without field names.

    With named arguments the fields can be read by name, as attribute or item:

    >>> row = Row(name="Alice", age=11)
    >>> row
    Row(name='Alice', age=11)
    >>> row.name, row["age"], row[0]
    ('Alice', 11, 'Alice')
    >>> "name" in row
    True

    A row of names is a template for rows with those field names:

    >>> Person = Row("name", "age")
    >>> Person("Bob", 12)
    Row(name='Bob', age=12)

    Without names the values have positions only. In rows of a type without names, `Types.ROW([...])`, the fields are
    called f0, f1, ...: these names only repeat the position, so that the two rows are equal.

    >>> Row(1, "x")[1]
    'x'
    >>> Row(1, "x") == Row(f0=1, f1="x")
    True
    """

    __slots__ = ("_names", "_row_kind", "_values")

    _names: list[str] | None
    _values: list[Any]
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("A Row takes either positional or named values, not both.")
        self._names = list(kwargs) if kwargs else None
        self._values = list(kwargs.values()) if kwargs else list(args)
        self._row_kind = RowKind.INSERT

    @property
    def _fields(self) -> list[str]:
        # PyFlink's private attribute, which programs use: a row without names does not have it.
        if self._names is None:
            raise AttributeError("_fields")
        return self._names

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """A row of the given kind.

        >>> Row.of_kind(RowKind.DELETE, 1).get_row_kind()
        <RowKind.DELETE: 3>
        """
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """The fields as a dict; with `recursive` also the rows inside.

        >>> Row(key=1, value=Row(name="a")).as_dict(True)
        {'key': 1, 'value': {'name': 'a'}}
        """
        if self._names is None:
            raise TypeError("Cannot convert a Row without field names into a dict.")
        values = map(_rows_to_dicts, self._values) if recursive else self._values
        return dict(zip(self._names, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """The row's kind of change."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Sets the row's kind of change."""
        self._row_kind = row_kind

    def set_field_names(self, field_names: list[str]) -> None:
        """Gives the values names, in order."""
        self._names = field_names

    def get_fields_by_names(self, names: list[str]) -> list[Any]:
        """The values in the order of `names`; all values when the row has no names of its own."""
        own = self._names
        if own is None or names == own:
            return self._values
        missing = [name for name in names if name not in own]
        if missing and len(names) == len(own) and not self.has_own_names():
            return self._values
        if missing:
            raise ValueError(f"Field names {missing} do not exist in {own}.")
        return [self._values[own.index(name)] for name in names]

    def has_own_names(self) -> bool:
        """Whether the fields have names other than f0, f1, ...

        >>> Row(a=1).has_own_names(), Row(f0=1).has_own_names(), Row(1).has_own_names()
        (True, False, False)
        """
        return self._names is not None and self._names != _positions(len(self._values))

    def __call__(self, *args: Any) -> Row:
        if len(args) > len(self._values):
            raise ValueError(
                f"Cannot create a Row with the fields {self}: it takes {len(self._values)} values but got {args}."
            )
        return make_row(self._values, list(args), self._row_kind)

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._names is None else self._names)

    def __getitem__(self, item: int | slice | str) -> Any:
        if isinstance(item, int | slice):
            return self._values[item]
        return self._values[self._index_of(item)]

    def __setitem__(self, key: int | slice | str, value: Any) -> None:
        self._values[key if isinstance(key, int | slice) else self._index_of(key)] = value

    def _index_of(self, name: str) -> int:
        if self._names is None:
            raise KeyError(name)
        try:
            return self._names.index(name)
        except ValueError:
            raise ValueError(name) from None

    def __getattr__(self, item: str) -> Any:
        # Python calls this only for names that are no attributes.
        if item.startswith("_") or self._names is None:
            raise AttributeError(item)
        try:
            return self._values[self._names.index(item)]
        except (ValueError, IndexError):
            raise AttributeError(item) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_row, (self._names, tuple(self._values), self._row_kind)

    def __repr__(self) -> str:
        if self._names is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        pairs = zip(self._names, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or type(self) is not type(other) or self._row_kind is not other._row_kind:
            return False
        if self._names == other._names:
            return self._values == other._values
        mine, theirs = self._known_names(), other._known_names()
        if sorted(mine) != sorted(theirs):
            return False
        own = dict(zip(mine, self._values, strict=False))
        return own == dict(zip(theirs, other._values, strict=False))

    def __hash__(self) -> int:
        # The order of the fields does not matter for the equality of named rows, so it must not for the hash.
        values, positions = self._values, _positions(len(self._values))
        if self._names is None or self._names == positions:
            return hash(tuple(values))
        named = dict(zip(self._names, values, strict=False))
        if named.keys() == set(positions):
            return hash(tuple([named[name] for name in positions]))
        return hash(frozenset(named.items()))

    def _known_names(self) -> list[str]:
        return _positions(len(self._values)) if self._names is None else self._names

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def names_by_position(arity: int) -> list[str]:
    """The names of fields without names of their own.

    >>> names_by_position(2)
    ['f0', 'f1']
    """
    return _positions(arity).copy()


@cache
def _positions(arity: int) -> list[str]:
    return [f"f{position}" for position in range(arity)]


_new_row = Row.__new__


def make_row(names: list[str] | None, values: list[Any], row_kind: RowKind = RowKind.INSERT) -> Row:
    """Make a row that keeps the list `values` itself, so the caller must not use it again: fast, for decoders.

    >>> make_row(["a"], [1])
    Row(a=1)
    """
    row = _new_row(Row)
    row._names = names
    row._values = values
    row._row_kind = row_kind
    return row


def _restore_row(names: list[str] | None, values: tuple[Any, ...], row_kind: RowKind) -> Row:
    return make_row(names, list(values), row_kind)


def _rows_to_dicts(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_rows_to_dicts(item) for item in value]
    if isinstance(value, dict):
        return {key: _rows_to_dicts(item) for key, item in value.items()}
    return value


def _row_parts(row: Row) -> tuple[Any, ...]:
    return row._row_kind.value, row._names, row._values


def _row_from_parts(parts: Sequence[Any]) -> Row:
    kind, names, values = parts
    return make_row(names, values, ROW_KINDS[kind])


register_value_type("Row", Row, _row_parts, _row_from_parts)
