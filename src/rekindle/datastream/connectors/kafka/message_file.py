"""The file beside an open transaction: the messages of one checkpoint interval, to be sent again if it was lost."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rekindle.datastream.connectors.interval_file import IntervalFile, read_frames
from rekindle.datastream.connectors.kafka.record_serializer import Message

_HEADERS = 7
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[list[object]]).decode


def message_file(path: str) -> IntervalFile:
    """Begin an empty file of messages."""
    return IntervalFile(path, _encode, "Kafka")


def read_messages(path: str) -> Iterator[Message]:
    """Yield the messages of a file in order."""
    for frame in read_frames(path):
        for message in _decode(frame):
            if len(message) > _HEADERS and message[_HEADERS] is not None:
                message[_HEADERS] = [(name, value) for name, value in message[_HEADERS]]  # type: ignore[attr-defined]
            yield tuple(message)
