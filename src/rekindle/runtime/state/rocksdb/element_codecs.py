"""Values as single elements, and columns of a part from elements, without decoding them.

The column of a part is one msgpack array of its values' own encodings. So elements are cut out of a column and joined
to another one by their bytes. State with a time to live has a column of times beside it: an element is both.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw

from rekindle.runtime.state.spec import Buffer, Codec
from rekindle.runtime.state.ttl.expiry import TimedCodec

_STAMP: Final = Struct(">q")
_encode = msgspec.msgpack.Encoder().encode
_split = msgspec.msgpack.Decoder(list[Raw]).decode
_split_timed = msgspec.msgpack.Decoder(tuple[list[int | None], Raw]).decode
#: nil: no value.
NIL: Final = b"\xc0"


class ElementCodec(Protocol):
    """Between values, their elements, and a part's column."""

    def elements(self, values: list[Any]) -> list[bytes]:
        """Encode values, each for itself."""

    def values(self, elements: Sequence[bytes]) -> list[Any]:
        """Decode elements."""

    def column(self, elements: Sequence[bytes]) -> Raw:
        """Join elements to the column that the codec's `encode_all` would write."""

    def split(self, column: Buffer) -> list[bytes]:
        """Cut a column into its elements."""


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

    def values(self, elements: Sequence[bytes]) -> list[Any]:
        return self._codec.decode_all(self.column(elements))

    def column(self, elements: Sequence[bytes]) -> Raw:
        return Raw(_encode(list(map(Raw, elements))))

    def split(self, column: Buffer) -> list[bytes]:
        return list(map(bytes, _split(column)))


class TimedElements(PlainElements):
    """Elements of a state with a time to live: the time of the last access, then the value."""

    __slots__ = ()

    def column(self, elements: Sequence[bytes]) -> Raw:
        stamps = [None if element == NIL else _STAMP.unpack_from(element)[0] for element in elements]
        values = [Raw(NIL if element == NIL else element[_STAMP.size :]) for element in elements]
        return Raw(_encode((stamps, values)))

    def split(self, column: Buffer) -> list[bytes]:
        stamps, values = _split_timed(column)
        pairs = zip(stamps, _split(values), strict=True)
        return [NIL if stamp is None else _STAMP.pack(stamp) + bytes(value) for stamp, value in pairs]
