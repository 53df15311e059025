"""Chunks: thousands of records of one channel as bytes.

Layout: header, marks (watermarks and idleness at positions between records), timestamps as an int64 column (absent when
there are none), then the records as one encoded list.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rekindle.serde import ChunkCodec

_HEADER = struct.Struct("<HHHIIBI")
_MARK = struct.Struct("<IBq")
_HAS_TIMESTAMPS = 1

WATERMARK, IDLE, END = 1, 2, 3


class Mark(NamedTuple):
    """An event between two records; `position` records come before it."""

    position: int
    kind: int
    value: int


class ChunkHeader(NamedTuple):
    """The channel of a chunk, and the chunk's place in the channel's sequence."""

    edge: int
    source: int
    target: int
    sequence: int
    records: int
    flags: int
    marks: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A decoded chunk."""

    records: list[Any]
    timestamps: list[int] | None
    marks: list[Mark]


class ChunkBody(NamedTuple):
    """The part of a chunk that is the same for every target of a broadcast."""

    records: int
    flags: int
    marks: int
    data: bytes


def encode_body(records: list[Any], timestamps: list[int] | None, marks: list[Mark], codec: ChunkCodec) -> ChunkBody:
    """Encode records, timestamps and marks."""
    parts = [_MARK.pack(*mark) for mark in marks]
    flags = 0
    if records:
        if timestamps is not None:
            flags = _HAS_TIMESTAMPS
            parts.append(array("q", timestamps).tobytes())
        parts.append(codec.encode(records))
    return ChunkBody(len(records), flags, len(marks), b"".join(parts))


def encode_chunk(edge: int, source: int, target: int, sequence: int, body: ChunkBody) -> bytes:
    """Return the whole chunk as bytes for Spark to move."""
    return _HEADER.pack(edge, source, target, sequence, body.records, body.flags, body.marks) + body.data


def relabelled(data: bytes, edge: int, source: int, target: int) -> bytes:
    """Return the same chunk as the first of another channel."""
    _, _, _, _, records, flags, marks = _HEADER.unpack_from(data)
    return _HEADER.pack(edge, source, target, 0, records, flags, marks) + data[_HEADER.size :]


def on_edge(data: bytes, edge: int) -> bytes:
    """Return the same chunk of the same channel, under another number of its edge."""
    header = _HEADER.unpack_from(data)
    return data if header[0] == edge else _HEADER.pack(edge, *header[1:]) + data[_HEADER.size :]


def rest_of(chunk: Chunk, header: ChunkHeader, records: int, marks: int, codec: ChunkCodec) -> bytes:
    """Return the bytes of a chunk without its first `records` records and `marks` marks."""
    left = [mark._replace(position=mark.position - records) for mark in chunk.marks[marks:]]
    times = chunk.timestamps[records:] if chunk.timestamps is not None else None
    body = encode_body(chunk.records[records:], times, left, codec)
    return encode_chunk(header.edge, header.source, header.target, header.sequence, body)


def with_records(data: bytes, convert: Callable[[bytes], bytes]) -> bytes:
    """Return the same chunk with its encoded records converted."""
    header = read_header(data)
    if not header.records:
        return data
    columns = 8 * header.records if header.flags & _HAS_TIMESTAMPS else 0
    start = _HEADER.size + header.marks * _MARK.size + columns
    return data[:start] + convert(data[start:])


def read_header(data: bytes) -> ChunkHeader:
    """Read the header alone: enough to route and to sort."""
    return ChunkHeader._make(_HEADER.unpack_from(data))


def decode_chunk(data: bytes, header: ChunkHeader, codec: ChunkCodec) -> Chunk:
    """Decode the records, timestamps and marks of a chunk."""
    offset = _HEADER.size
    marks_end = offset + header.marks * _MARK.size
    marks = [Mark._make(fields) for fields in _MARK.iter_unpack(data[offset:marks_end])]
    if not header.records:
        return Chunk([], None, marks)
    view = memoryview(data)
    timestamps: list[int] | None = None
    if header.flags & _HAS_TIMESTAMPS:
        column = array("q")
        column.frombytes(view[marks_end : marks_end + 8 * header.records])
        timestamps = column.tolist()
        marks_end += 8 * header.records
    records = codec.decode(view[marks_end:])
    assert len(records) == header.records, f"edge {header.edge}: {len(records)} records, header says {header.records}"
    return Chunk(records, timestamps, marks)
