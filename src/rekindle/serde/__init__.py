"""Encodings to bytes: chunks between slots, single state values, metadata, and programs.

- `chunk_codecs`: one encoded list of records, msgpack with a declared type or pickle without; the hot path
- `tagged_codec`: builtins, registered classes and rows, restored exactly, never with pickle (I20)
- `state_value_codecs`: one state value, typed, tagged, or pickled where that is allowed
- `type_schema`: the schema of a type as it lies in a checkpoint; `class_free_decoding` reads values without
  the classes of the program
- `pickle_by_value`: functions and classes of the user's program, pickled for a slot
"""

from __future__ import annotations

from rekindle.serde.chunk_codecs import ChunkCodec, WireType, codec_for
from rekindle.serde.pickle_by_value import cloud_dumps
from rekindle.serde.state_value_codecs import ValueCodec, value_codec_for
from rekindle.serde.tagged_codec import register_type, register_value_type, tagged_dumps, tagged_loads

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
