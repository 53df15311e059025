"""The columns of keys and windows, and tables in ranges of key groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rekindle.checkpoint.manifest import KeyedPart, OperatorState, blob_size
from rekindle.checkpoint.parts import by_key_group
from rekindle.errors import InvalidKeyError
from rekindle.runtime.key_hash import key_group
from rekindle.snapshots.column_values import python_key
from rekindle.snapshots.settle import settled
from rekindle.snapshots.shapes import LONG, UNKNOWN, ElementsShape, FieldsShape, JsonShape, Shape
from rekindle.snapshots.stored_types import StoredType
from rekindle.snapshots.stored_values import from_column
from rekindle.snapshots.table import TableColumn

KEY_GROUP: Final = "key_group"
KEY: Final = "key"
WINDOW: Final = "window"


@dataclass(frozen=True)
class KeyColumns:
    """How keys are shown; the rows of a window operator lie under (key, window)."""

    stored: StoredType
    key: Shape
    #: None: the operator has no windows.
    window: Shape | None = None
    #: Whether (key, window) is a tuple in the tagged encoding.
    tagged_pair: bool = False

    def columns(self) -> list[TableColumn]:
        """One column, or two with windows."""
        return [TableColumn(KEY, self.key), *([TableColumn(WINDOW, self.window)] if self.window is not None else [])]

    def plain(self, key: Any) -> Any:
        """The key without its window."""
        return key if self.window is None else key[0]

    def python_key(self, key: Any) -> Any:
        """The key as the program's functions see it, and as it is hashed; as it is if only its class could tell."""
        return python_key(self.key, self.plain(key))

    def group_of(self, key: Any, operator: OperatorState) -> int:
        """The key group that follows from a stored key; -1 if none does."""
        try:
            return key_group(self.python_key(key), operator.max_parallelism)
        except InvalidKeyError:  # a key of a class that this process does not know
            return -1

    def to_store(self) -> Callable[[Any, Any], Any]:
        """The conversion of the columns' values, key and window, to the key to store."""
        own = from_column(self.key, self.stored.tagged)
        if self.window is None:
            return lambda key, _: own(key)
        ns, build = from_column(self.window, self.stored.tagged), tuple if self.tagged_pair else list
        return lambda key, window: build((own(key), ns(window)))


def key_columns(operator: OperatorState, stored: StoredType, keys: Sequence[Any], as_json: bool = False) -> KeyColumns:
    """The columns of keys, settled by some of them."""
    shape = stored.shape
    if not is_windowed(operator):
        return KeyColumns(stored, JsonShape() if as_json and stored.tagged else settled(shape, keys))
    pair = shape.parts if isinstance(shape, FieldsShape) else (UNKNOWN, UNKNOWN)
    window = settled(pair[1], [key[1] for key in keys])
    if isinstance(window, FieldsShape | ElementsShape):  # a time window
        window = FieldsShape(("start_ms", "end_ms"), (LONG, LONG), window.form)
    tagged_pair = stored.tagged and bool(keys) and type(keys[0]) is tuple
    return KeyColumns(stored, settled(pair[0], [key[0] for key in keys]), window, tagged_pair)


def is_windowed(operator: OperatorState) -> bool:
    """Whether the operator's rows lie under a key and a window."""
    return " windows of " in operator.layout


def split_by_groups(parts: Sequence[KeyedPart], count: int) -> list[Any]:
    """Divide parts into at most `count` ranges of whole key groups, of about the same size."""
    groups = list(by_key_group(parts).values())
    total = sum(blob_size(part.blob) for part in parts) or 1
    ranges: list[list[KeyedPart]] = [[] for _ in range(max(1, min(count, len(groups))))]
    done = 0
    for own in groups:
        ranges[done * len(ranges) // total].extend(own)
        done += sum(blob_size(part.blob) for part in own)
    return [own for own in ranges if own]
