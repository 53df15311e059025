"""The file of a checkpoint interval's rows: a committable, which travels in the checkpoint."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.errors import ConnectorError
from rekindle.serde import value_codec_for

_LENGTH = struct.Struct("<I")


class IntervalFile:
    """Appends rows to a file, many at a time; a row that is not of the declared type is told."""

    def __init__(self, path: str, values_type: TypeInformation) -> None:
        """Begin an empty file."""
        self.path = path
        self.rows = 0
        self._codec = value_codec_for(values_type)
        self._file = open(path, "wb")

    def append(self, rows: list[RowValues]) -> None:
        """Append a frame of rows."""
        frame = self._codec.encode_all(rows)
        try:
            self._file.write(_LENGTH.pack(len(frame)))
            self._file.write(frame)
        except OSError as error:
            raise ConnectorError(
                f"The JDBC sink could not keep a checkpoint interval's rows in {self.path}: {error}; make room on that "
                "disk."
            ) from error
        self.rows += len(rows)

    def flush(self) -> None:
        """Make the rows readable."""
        self._file.flush()

    def finish(self) -> None:
        """Close the file: its content goes into the checkpoint."""
        self._file.close()

    def discard(self) -> None:
        """Close and remove the file."""
        self._file.close()
        if os.path.exists(self.path):
            os.unlink(self.path)


def read_rows(path: str, values_type: TypeInformation) -> Iterator[list[RowValues]]:
    """Yield the rows of a file in order, frame by frame."""
    codec = value_codec_for(values_type)
    with open(path, "rb") as file:
        while head := file.read(_LENGTH.size):
            yield codec.decode_all(file.read(_LENGTH.unpack(head)[0]))
