"""The file of a checkpoint interval's output: a committable, which travels in the checkpoint."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from typing import Any

from rekindle.errors import ConnectorError

_LENGTH = struct.Struct("<I")


class IntervalFile:
    """Appends items to a file, many at a time. `encode` makes bytes of a list of items; `sink` is named in errors."""

    def __init__(self, path: str, encode: Callable[[list[Any]], bytes], sink: str) -> None:
        """Begin an empty file."""
        self.path = path
        self.items = 0
        self._encode = encode
        self._sink = sink
        self._file = open(path, "wb")

    def append(self, items: list[Any]) -> None:
        """Append a frame of items."""
        frame = self._encode(items)
        try:
            self._file.write(_LENGTH.pack(len(frame)))
            self._file.write(frame)
        except OSError as error:
            raise ConnectorError(
                f"The {self._sink} sink could not keep a checkpoint interval's output in {self.path}: {error}; make "
                "room on that disk."
            ) from error
        self.items += len(items)

    def flush(self) -> None:
        """Make the items readable."""
        self._file.flush()

    def finish(self) -> None:
        """Close the file: its content goes into the checkpoint."""
        self._file.close()

    def discard(self) -> None:
        """Close and remove the file."""
        self._file.close()
        if os.path.exists(self.path):
            os.unlink(self.path)


def read_frames(path: str) -> Iterator[bytes]:
    """Yield the frames of a file in order."""
    with open(path, "rb") as file:
        while head := file.read(_LENGTH.size):
            yield file.read(_LENGTH.unpack(head)[0])
