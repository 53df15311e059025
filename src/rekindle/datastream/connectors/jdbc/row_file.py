"""The file of a checkpoint interval's rows; a row that is not of the declared type is told when it is appended."""

from __future__ import annotations

from collections.abc import Iterator

from rekindle.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from rekindle.datastream.connectors.interval_file import IntervalFile, read_frames
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.serde import value_codec_for


def row_file(path: str, values_type: TypeInformation) -> IntervalFile:
    """Begin an empty file of rows."""
    return IntervalFile(path, value_codec_for(values_type).encode_all, "JDBC")


def read_rows(path: str, values_type: TypeInformation) -> Iterator[list[RowValues]]:
    """Yield the rows of a file in order, frame by frame."""
    codec = value_codec_for(values_type)
    for frame in read_frames(path):
        yield codec.decode_all(frame)


def rows_of_committable(path: str, type_info: RowTypeInfo | TupleTypeInfo) -> Iterator[RowValues]:
    """Yield the rows of a file that `rekindle checkpoints take-out` has taken out; `type_info` is the sink's.

    >>> order = Types.ROW([Types.LONG(), Types.STRING()])
    >>> list(rows_of_committable("taken-out/subtask-2-1", order))  # doctest: +SKIP
    [(1, 'anna')]
    """
    for rows in read_rows(path, Types.TUPLE(type_info.get_field_types())):
        yield from rows
