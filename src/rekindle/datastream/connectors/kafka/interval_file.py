"""The file beside an open transaction: the messages of one checkpoint interval, to be sent again if it was lost."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import msgspec

from rekindle.datastream.connectors.kafka.record_serializer import Message
from rekindle.errors import ConnectorError

_LENGTH = struct.Struct("<I")
_HEADERS = 7
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[list[object]]).decode


class IntervalFile:
    """Appends messages to a file, many at a time."""

    def __init__(self, path: str) -> None:
        """Begin an empty file."""
        self.path = path
        self.records = 0
        self._file = open(path, "wb")

    def append(self, messages: list[Message]) -> None:
        """Append a frame of messages."""
        try:
            frame = _encode(messages)
            self._file.write(_LENGTH.pack(len(frame)))
            self._file.write(frame)
        except OSError as error:
            raise ConnectorError(
                f"The Kafka sink could not keep a checkpoint interval's messages in {self.path}: {error}; make room on "
                "that disk."
            ) from error
        self.records += len(messages)

    def finish(self) -> None:
        """Close the file: its content goes into the checkpoint."""
        self._file.close()

    def discard(self) -> None:
        """Close and remove the file."""
        self._file.close()
        if os.path.exists(self.path):
            os.unlink(self.path)


def read_messages(path: str) -> Iterator[Message]:
    """Yield the messages of a file in order."""
    with open(path, "rb") as file:
        while head := file.read(_LENGTH.size):
            frame = file.read(_LENGTH.unpack(head)[0])
            for message in _decode(frame):
                if len(message) > _HEADERS and message[_HEADERS] is not None:
                    message[_HEADERS] = [(name, value) for name, value in message[_HEADERS]]  # type: ignore[attr-defined]
                yield tuple(message)
