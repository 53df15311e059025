"""The file of a checkpoint interval's rows; a row that is not of the declared type is told when it is appended."""

from __future__ import annotations

from collections.abc import Iterator

from rekindle.common.typeinfo import TypeInformation
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
