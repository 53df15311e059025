"""The current key of a keyed backend: its row is the one that the handles work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, Protocol

from rekindle.errors import StateAccessError
from rekindle.runtime.state.change_tracking import ROW_KEY, Row


class _NoKeyRow(list[Any]):
    """The current row while there is no current key: any access to it raises StateAccessError."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise StateAccessError(
            "Keyed state and timers belong to the key of an element, and there is none here: use them while an "
            "element or a timer is processed, not in open(), close() or __init__()."
        )

    __getitem__ = __setitem__ = _refuse


NO_KEY: Final = _NoKeyRow()


class FindsRows(Protocol):
    """The part of a backend that finds the row of a key."""

    row: Row
    front: dict[Any, Row]

    def load_row(self, key: Any) -> Row:
        """The row of a key that is not in `front`; puts it there."""


class CurrentKey:
    """The methods of a backend that choose the current key."""

    __slots__ = ()

    def set_current_key(self: FindsRows, key: Any) -> None:
        """Let the handles work on this key from now on."""
        self.row = self.front.get(key) or self.load_row(key)

    def current_key(self: FindsRows) -> Any:
        """The key that the handles work on."""
        return self.row[ROW_KEY]

    def clear_current_key(self: FindsRows) -> None:
        """Leave no current key: handles refuse to work."""
        self.row = NO_KEY

    @contextmanager
    def visiting_keys(self: FindsRows) -> Iterator[None]:
        """A block in which any key may become the current one; afterwards the former one, or none, is current again."""
        before = self.row
        try:
            yield
        finally:
            self.row = before
            if before is not NO_KEY:  # look the row up again: it may have been replaced
                self.row = self.front.get(before[ROW_KEY]) or self.load_row(before[ROW_KEY])
