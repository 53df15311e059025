"""Derived data by key that an operator needs beside its state: no snapshot holds it, a restore derives it anew."""

from __future__ import annotations

from typing import Any, Protocol


class KeyIndex(Protocol):
    """key -> value. A value that was changed in place has to be put again."""

    def get(self, key: Any, /) -> Any:
        """The value of a key; None if it has none."""

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; None removes it."""


class HeldIndex(dict[Any, Any]):
    """An index in memory."""

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; None removes it."""
        if value is None:
            self.pop(key, None)
        else:
            self[key] = value
