"""Encode rows of a DataFrame as keys and cells, each with its key group: the work of a Spark task that writes state.

Plans are data that travels; their methods `writer` and `encoder` make of it what does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rekindle.common.type_system.fields import from_arrow
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.state import StateDescriptor
from rekindle.errors import InvalidKeyError, RekindleError, TypeMismatchError
from rekindle.key_groups import subtask_for_key_group
from rekindle.runtime.key_bytes import owned_key
from rekindle.runtime.key_hash import key_group
from rekindle.serde import value_codec_for
from rekindle.serde.type_schema import TypeSchema
from rekindle.snapshots.cells import CellWriter, StateHead, described_writer, stored_writer
from rekindle.snapshots.group_parts import TimerCell
from rekindle.snapshots.key_columns import KEY_GROUP, WINDOW, KeyColumns
from rekindle.snapshots.keyed_table import column_name
from rekindle.snapshots.shapes import Shape
from rekindle.snapshots.state_columns import StateColumn
from rekindle.snapshots.stored_state import ClassFreeCodec
from rekindle.snapshots.stored_types import UNTYPED
from rekindle.snapshots.stored_values import from_column
from rekindle.snapshots.timer_table import DOMAIN, EVENT, PROCESSING, TIME_MS

_encode = msgspec.msgpack.Encoder().encode
#: (key, window, given key group or None) -> (encoded key, key group)
KeyEncoder = Callable[[Any, Any, Any], tuple[bytes, int]]
#: (subtask, key group, encoded key, what stands beside it)
EncodedRow = tuple[int, int, bytes, bytes]


@dataclass(frozen=True)
class StoredKeys:
    """Keys in the form in which a checkpoint has them."""

    columns: KeyColumns
    #: Whether a key's group follows from its columns.
    hashed: bool
    max_parallelism: int

    @property
    def schema(self) -> TypeSchema:
        """The schema of the keys."""
        return self.columns.stored.schema

    def encoder(self) -> KeyEncoder:
        """The function that encodes keys."""
        to_store, codec = self.columns.to_store(), ClassFreeCodec(self.columns.stored)

        def encode(key: Any, window: Any, group: Any) -> tuple[bytes, int]:
            stored = to_store(key, window)
            if not self.hashed and group is None:
                raise InvalidKeyError(
                    f"The key group of {key!r:.200} does not follow from the table's columns: keep the column "
                    f"{KEY_GROUP} of rows that were read, and give key_type for new keys."
                )
            own = key_group(self.columns.python_key(stored), self.max_parallelism) if self.hashed else int(group)
            return codec.encode(stored), own

        return encode


@dataclass(frozen=True)
class DeclaredKeys:
    """Keys of a declared type, or plain ones without: as the program's `key_by` writes them."""

    type_info: TypeInformation | None
    max_parallelism: int

    @property
    def schema(self) -> TypeSchema:
        """The schema of the keys."""
        return value_codec_for(self.type_info).schema

    def encoder(self) -> KeyEncoder:
        """The function that encodes keys."""
        codec = value_codec_for(self.type_info)
        convert = (from_arrow(self.type_info) if self.type_info is not None else None) or (lambda value: value)

        def encode(key: Any, _: Any, __: Any) -> tuple[bytes, int]:
            own = owned_key(convert(key))
            return codec.encode(own), key_group(own, self.max_parallelism)

        return encode


@dataclass(frozen=True)
class StatePlan:
    """A state to write: as a checkpoint has it, or as a descriptor describes it."""

    source: StateColumn | StateDescriptor
    keys: TypeSchema

    @property
    def column(self) -> str:
        """The column of the DataFrame."""
        return column_name(self.source.state.name if isinstance(self.source, StateColumn) else self.source.name)

    def writer(self, now_ms: int) -> CellWriter:
        """The writer of its cells."""
        if isinstance(self.source, StateColumn):
            return stored_writer(self.source, now_ms)
        return described_writer(self.source, self.keys, now_ms)

    def head(self) -> StateHead:
        """The state as its parts will describe it."""
        return self.writer(0).head


@dataclass(frozen=True)
class RowPlan:
    """How rows become keyed state or timers of an operator."""

    keys: StoredKeys | DeclaredKeys
    key_column: str
    parallelism: int
    now_ms: int
    #: The states to write; None: the rows are timers.
    states: Sequence[StatePlan] | None = None
    #: The shape of the windows that timers belong to; None: they belong to keys alone.
    timer_window: Shape | None = None

    def columns(self) -> list[str]:
        """The columns that rows must have."""
        windowed = self.timer_window is not None
        if isinstance(self.keys, StoredKeys) and self.keys.columns.window is not None:
            windowed = True
        own = [DOMAIN, TIME_MS] if self.states is None else [state.column for state in self.states]
        return [self.key_column, *([WINDOW] if windowed else []), *own]

    def encoder(self) -> Callable[[Mapping[str, Any]], EncodedRow]:
        """The function that encodes rows, each a dict by column."""
        encode_key, beside = self.keys.encoder(), self._beside()
        most = self.keys.max_parallelism

        def encode(row: Mapping[str, Any]) -> EncodedRow:
            key = row[self.key_column]
            try:
                data, group = encode_key(key, row.get(WINDOW), row.get(KEY_GROUP))
                if not 0 <= group < most:
                    raise InvalidKeyError(f"There is no key group {group}: the operator has {most}.")
                return subtask_for_key_group(group, most, self.parallelism), group, data, beside(row)
            except (RekindleError, TypeError, ValueError, LookupError, AttributeError) as error:
                raise TypeMismatchError(f"The row of key {key!r:.200} cannot be written: {error}") from error

        return encode

    def _beside(self) -> Callable[[Mapping[str, Any]], bytes]:
        if self.states is None:
            return self._timer()
        cells = [(state.column, state.writer(self.now_ms)) for state in self.states]
        return lambda row: _encode([writer.cell(row[column]) for column, writer in cells])

    def _timer(self) -> Callable[[Mapping[str, Any]], bytes]:
        window = self.timer_window
        namespace = (lambda _: None) if window is None else from_column(window, tagged=True)
        codec = ClassFreeCodec(UNTYPED)

        def encode(row: Mapping[str, Any]) -> bytes:
            if row[DOMAIN] not in (EVENT, PROCESSING):
                raise TypeMismatchError(f"{DOMAIN} is '{EVENT}' or '{PROCESSING}', not {row[DOMAIN]!r}.")
            own = msgspec.Raw(codec.encode(namespace(row.get(WINDOW))))
            return _encode(TimerCell(row[DOMAIN], int(row[TIME_MS]), own))

        return encode
