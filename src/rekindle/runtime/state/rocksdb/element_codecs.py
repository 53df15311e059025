"""Values as single elements, and columns of a part from elements, without decoding them.

The column of a part is one msgpack array of its values' own encodings. So elements are cut out of a column and joined
to another one by their bytes. State with a time to live has a column of times beside it: an element is a pair of both.
Every element is one msgpack value, so that a few of them one after the other can be told apart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw

from rekindle.runtime.state.spec import Buffer, Codec
from rekindle.runtime.state.ttl.expiry import TimedCodec

#: An element: its bytes, or a piece of the column that it was cut out of, which it keeps alive.
Element = bytes | Raw

_FEW: Final = 15
_MANY: Final = 0xFFFF
_ARRAY_16: Final = Struct(">BH")
_ARRAY_32: Final = Struct(">BI")
_encode = msgspec.msgpack.Encoder().encode
_split = msgspec.msgpack.Decoder(list[Raw]).decode
_split_timed = msgspec.msgpack.Decoder(tuple[list[int | None], list[Raw]]).decode
_split_pairs = msgspec.msgpack.Decoder(list[tuple[int, Raw] | None]).decode
#: nil: no value.
NIL: Final = b"\xc0"


def joined(elements: Sequence[Element], values_in_each: int = 1) -> bytes:
    """One msgpack array of elements; several msgpack values may be in each.

    >>> msgspec.msgpack.decode(joined([b"\\x01", NIL]))
    [1, None]
    """
    count = values_in_each * len(elements)
    if count <= _FEW:
        header = bytes((0x90 | count,))
    else:
        header = _ARRAY_16.pack(0xDC, count) if count <= _MANY else _ARRAY_32.pack(0xDD, count)
    return header + b"".join(elements)


def cut(array: Buffer) -> list[Raw]:
    """The elements of one msgpack array, without copying them."""
    return _split(array)


class ElementCodec(Protocol):
    """Between values, their elements, and a part's column."""

    def elements(self, values: list[Any]) -> list[bytes]:
        """Encode values, each for itself."""

    def pieces(self, values: list[Any]) -> Sequence[Element]:
        """The same as pieces of one encoded column, which they keep alive: for elements that stay together."""

    def values(self, elements: Sequence[Element]) -> list[Any]:
        """Decode elements."""

    def column(self, elements: Sequence[Element]) -> Raw:
        """Join elements to the column that the codec's `encode_all` would write."""

    def split(self, column: Buffer) -> list[bytes]:
        """Cut a column into its elements."""

    def cut(self, column: Buffer) -> Sequence[Element]:
        """Cut a column into its elements; they may be pieces of it."""


def element_codec(codec: Codec) -> ElementCodec:
    """The element codec over a state's codec."""
    return TimedElements(codec) if isinstance(codec, TimedCodec) else PlainElements(codec)


class PlainElements:
    """Elements of a column that is one array.

    >>> from rekindle.serde import value_codec_for
    >>> elements = PlainElements(value_codec_for(None))
    >>> elements.values(elements.split(elements.column(elements.elements(["a", None, 7]))))
    ['a', None, 7]
    """

    __slots__ = ("_codec",)

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def elements(self, values: list[Any]) -> list[bytes]:
        return self.split(self._codec.encode_all(values))

    def pieces(self, values: list[Any]) -> Sequence[Element]:
        return self.cut(self._codec.encode_all(values))

    def values(self, elements: Sequence[Element]) -> list[Any]:
        return self._codec.decode_all(self.column(elements))

    def column(self, elements: Sequence[Element]) -> Raw:
        return Raw(joined(elements))

    def split(self, column: Buffer) -> list[bytes]:
        return list(map(bytes, self.cut(column)))

    def cut(self, column: Buffer) -> Sequence[Element]:
        return _split(column)


class TimedElements(PlainElements):
    """Elements of a state with a time to live: pairs of the time of the last access and the value, or nil."""

    __slots__ = ()

    def column(self, elements: Sequence[Element]) -> Raw:
        pairs = _split_pairs(joined(elements))
        stamps = [None if pair is None else pair[0] for pair in pairs]
        return Raw(_encode((stamps, [None if pair is None else pair[1] for pair in pairs])))

    def cut(self, column: Buffer) -> Sequence[Element]:
        stamps, values = _split_timed(column)
        pairs = zip(stamps, values, strict=True)
        return [NIL if stamp is None else _encode((stamp, value)) for stamp, value in pairs]
