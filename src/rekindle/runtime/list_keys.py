"""Lists as keys: PyFlink accepts them. Here a key is looked up in a dict, so a list becomes a tuple.

Hot loops look a key up as it is and call `hashable_key` only when the lookup raises TypeError: other keys cost nothing.
"""

from __future__ import annotations

from typing import Any, Final

from rekindle.errors import InvalidKeyError
from rekindle.serde import ValueCodec, value_codec_for
from rekindle.serde.chunk_codecs import Buffer, WireType
from rekindle.serde.type_schema import TypeSchema

#: Declared types without parts: none of their values is a list.
_PLAIN: Final = frozenset({bool, int, float, str, bytes})


def hashable_key(key: Any) -> Any:
    """Return the key with tuples in place of lists; refuse one that is still not hashable.

    >>> hashable_key(["a", (1, [2])]), hashable_key("a")
    (('a', (1, (2,))), 'a')
    """
    key = _as_tuple(key)
    try:
        hash(key)
    except TypeError as error:
        raise InvalidKeyError(f"A key must be hashable, for example a tuple instead of a dict ({error}).") from error
    return key


def _as_tuple(key: Any) -> Any:
    if type(key) is list or type(key) is tuple:
        return tuple([_as_tuple(part) for part in key])
    return key


def key_codec_for(key_type: WireType | None, *, allow_pickle: bool = False) -> ValueCodec:
    """The codec for keys of this type, which may contain lists.

    >>> from rekindle.common.typeinfo import Types
    >>> codec = key_codec_for(Types.LIST(Types.INT()))
    >>> codec.decode_all(codec.encode_all([(1, 2)]))
    [(1, 2)]
    """
    codec = value_codec_for(key_type, allow_pickle=allow_pickle)
    # The tagged codec restores tuples as tuples.
    has_no_lists = key_type is None or key_type.python_type() is None or key_type.python_type() in _PLAIN
    return codec if has_no_lists else _CompositeKeyCodec(codec)


class _CompositeKeyCodec:
    """Decodes keys that were declared as lists, or with lists inside, to tuples."""

    def __init__(self, codec: ValueCodec) -> None:
        self._codec = codec
        self.name = codec.name
        self.encode = codec.encode
        self.encode_all = codec.encode_all

    @property
    def schema(self) -> TypeSchema:
        """The schema of the declared type."""
        return self._codec.schema

    def decode(self, data: Buffer) -> Any:
        """Decode one key."""
        return hashable_key(self._codec.decode(data))

    def decode_all(self, data: Buffer) -> list[Any]:
        """Decode the bytes of `encode_all`."""
        keys = self._codec.decode_all(data)
        try:
            for key in keys:
                hash(key)
        except TypeError:
            return list(map(hashable_key, keys))
        return keys
