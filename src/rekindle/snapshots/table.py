"""A table of a checkpoint: named columns with shapes, read in splits that different tasks may read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rekindle.snapshots.shapes import Shape


@dataclass(frozen=True)
class TableColumn:
    """A column: its name and the shape of its values."""

    name: str
    shape: Shape


@dataclass(frozen=True)
class ReadOptions:
    """The options of a read: the rows and values of a table that a user wants."""

    #: Only these states, in this order; None: all.
    states: tuple[str, ...] | None = None
    #: Only this key, as a one-element tuple.
    key: tuple[Any] | None = None
    #: Show values whose type is not declared as JSON.
    untyped_as_json: bool = False
    #: Show every keyed state as JSON.
    all_as_json: bool = False
    #: Show when each value of state with a time to live was last accessed.
    access_times: bool = False
    #: Unpickle values that were pickled: only for checkpoints of a trusted origin, whose code may run.
    allow_pickle: bool = False
    #: Add the encoded key, and a digest of each state's value, by which two checkpoints are compared.
    digests: bool = False
    #: The number of splits; None: as many as the size asks for.
    splits: int | None = None


class StateTable(ABC):
    """A table; it is planned once, and its splits are read anywhere."""

    columns: Sequence[TableColumn]

    @abstractmethod
    def splits(self) -> list[Any]:
        """Parts of the table that can be read independently; each can be sent to another process."""

    @abstractmethod
    def rows(self, split: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a split: the values of the columns, in order, as Arrow takes them."""


class ListedTable(StateTable):
    """A small table whose rows are known."""

    def __init__(self, columns: Sequence[TableColumn], rows: Sequence[tuple[Any, ...]]) -> None:
        self.columns = columns
        self._rows = rows

    def splits(self) -> list[Any]:
        """All rows in one split."""
        return [self._rows]

    def rows(self, split: Any) -> Iterator[tuple[Any, ...]]:
        """The rows."""
        return iter(split)
