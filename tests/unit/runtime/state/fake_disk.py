"""A disk below a cache of rows, which notes the keys that are read and the rows that leave memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rekindle.runtime.state.change_tracking import Row


class Disk:
    """Rows by key; notes what was read and what left."""

    def __init__(self) -> None:
        self.row: Row = []
        self.read: list[Any] = []
        self.left: list[list[Any]] = []

    def read_rows(self, keys: Sequence[Any]) -> list[Row]:
        self.read += keys
        return [[key, 0] for key in keys]

    def write_back(self, rows: Iterable[Row], leave: bool) -> None:
        assert leave
        self.left.append([row[0] for row in rows])
