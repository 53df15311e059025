"""`TypeHint`: a type hint in the form of Flink's Java texts."""

from __future__ import annotations

from typing import Any

from rekindle.common.type_system.type_information import TypeInformation, coerce


class _Hints(type):
    """Makes `TypeHint[...]` a hint, for type checkers too: they take `__class_getitem__` for a generic class's own."""

    def __getitem__(cls, hint: Any) -> TypeHint:
        made: TypeHint = cls(hint)
        return made


class TypeHint(metaclass=_Hints):
    """A type hint for `TypeInformation.of`: Java's `new TypeHint<Tuple2<String, Long>>(){}` in Python's spelling.

    >>> TypeInformation.of(TypeHint[tuple[str, int]])
    Tuple<String, Long>
    >>> TypeHint(list[float]).get_type_info()
    List<Double>
    """

    def __init__(self, hint: Any) -> None:
        self._type_info = coerce(hint)

    def __call__(self) -> TypeHint:
        """The hint itself: `TypeHint[str]()` is written as in Java."""
        return self

    def get_type_info(self) -> TypeInformation:
        """The type."""
        return self._type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeHint) and self._type_info == other._type_info

    def __hash__(self) -> int:
        return hash(self._type_info)

    def __repr__(self) -> str:
        return f"TypeHint[{self._type_info!r}]"
