"""Expressions that are computed of a row without SQL: a column, a literal, or a call of a Python function of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias


@dataclass(frozen=True)
class ColumnValue:
    """The value of a column."""

    name: str

    def bind(self, names: Sequence[str]) -> Evaluate | None:
        """Return a function from the values of these columns to this one; None if it is not among them."""
        return itemgetter(names.index(self.name)) if self.name in names else None


@dataclass(frozen=True)
class LiteralValue:
    """A value of the program."""

    value: Any

    def bind(self, names: Sequence[str]) -> Evaluate | None:
        """Return a function that gives the value."""
        return _Always(self.value)


@dataclass(frozen=True)
class CallValue:
    """The result of a Python function."""

    function: Callable[..., Any]
    arguments: tuple[Computed, ...]

    def bind(self, names: Sequence[str]) -> Evaluate | None:
        """Return a function from the values of these columns to the result; None if a column is not among them."""
        parts = [argument.bind(names) for argument in self.arguments]
        bound = [part for part in parts if part is not None]
        return _Call(self.function, bound) if len(bound) == len(parts) else None


Evaluate: TypeAlias = Callable[[Sequence[Any]], Any]
Computed: TypeAlias = ColumnValue | LiteralValue | CallValue


class _Always:
    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self, values: Sequence[Any]) -> Any:
        return self._value


class _Call:
    def __init__(self, function: Callable[..., Any], arguments: Sequence[Evaluate]) -> None:
        self._function = function
        self._arguments = arguments

    def __call__(self, values: Sequence[Any]) -> Any:
        return self._function(*[argument(values) for argument in self._arguments])
