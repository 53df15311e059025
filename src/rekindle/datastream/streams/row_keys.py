"""Keys with rows in them: they have the names of their declared type, as the keys of a checkpoint have."""

from __future__ import annotations

from typing import Any

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.functions.simple import KeySelector


class RowKeySelector(KeySelector):
    """A key selector whose keys are given the shape of their type: a key is the same before and after a restore (I11).

    >>> from rekindle.common import Row, Types
    >>> RowKeySelector(lambda value: Row(*value), Types.ROW_NAMED(["city", "year"], [str, int])).get_key(("Ulm", 3))
    Row(city='Ulm', year=3)
    """

    def __init__(self, selector: Any, key_type: TypeInformation) -> None:
        self._selector = selector
        self._key_type = key_type
        self._select = selector.get_key if isinstance(selector, KeySelector) else selector
        self._shape = key_type.shaper()

    def __reduce__(self) -> tuple[Any, ...]:
        return RowKeySelector, (self._selector, self._key_type)

    def get_key(self, value: Any) -> Any:
        """The user's key, with the names of its type."""
        key = self._select(value)
        return key if self._shape is None else self._shape(key)


def typed_selector(selector: Any, key_type: TypeInformation | None) -> Any:
    """The selector itself, unless its keys have rows in them."""
    return selector if key_type is None or key_type.shaper() is None else RowKeySelector(selector, key_type)
