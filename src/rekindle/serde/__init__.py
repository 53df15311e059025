"""Encodings to bytes: chunks between slots, single state values, metadata, and programs.

- `chunks`: one encoded list of records, msgpack with a declared type or pickle without; the hot path
- `tagged`: builtins, registered classes and rows, restored exactly, never with pickle (I20)
- `values`: one state value, typed, tagged, or pickled where that is allowed
- `byvalue`: functions and classes of the user's program, pickled for a slot
"""

from __future__ import annotations

from rekindle.serde.byvalue import cloud_dumps
from rekindle.serde.chunks import ChunkCodec, WireType, codec_for
from rekindle.serde.tagged import register_type, register_value_type, tagged_dumps, tagged_loads
from rekindle.serde.values import ValueCodec, value_codec_for

__all__ = [
    "ChunkCodec",
    "ValueCodec",
    "WireType",
    "cloud_dumps",
    "codec_for",
    "register_type",
    "register_value_type",
    "tagged_dumps",
    "tagged_loads",
    "value_codec_for",
]
