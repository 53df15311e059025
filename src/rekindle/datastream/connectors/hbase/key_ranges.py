"""Ranges of row keys, which are the splits of a table: pure functions of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class KeyRange:
    """The rows from `start` to before `stop`; an empty `stop` is the end of the table.

    >>> KeyRange(b"a", b"c").cut([b"b", b"x"])
    [KeyRange(start=b'a', stop=b'b'), KeyRange(start=b'b', stop=b'c')]
    """

    start: bytes = b""
    stop: bytes = b""

    def contains(self, key: bytes) -> bool:
        """Return whether a row is in the range."""
        return self.start <= key and (not self.stop or key < self.stop)

    def cut(self, keys: Iterable[bytes]) -> list[KeyRange]:
        """Return the parts of this range between the keys; those outside play no part."""
        inner = sorted({key for key in keys if key > self.start and self.contains(key)})
        return [KeyRange(*pair) for pair in zip([self.start, *inner], [*inner, self.stop], strict=True)]


def prefix_range(prefix: bytes) -> KeyRange:
    """Return the range of the rows that begin with a prefix.

    >>> prefix_range(b"ab"), prefix_range(bytes([255]))
    (KeyRange(start=b'ab', stop=b'ac'), KeyRange(start=b'\\xff', stop=b''))
    """
    rest = prefix.rstrip(b"\xff")
    stop = rest[:-1] + bytes([rest[-1] + 1]) if rest else b""
    return KeyRange(prefix, stop)


def following(row: bytes) -> bytes:
    """Return the smallest key after this row.

    >>> following(b"ab")
    b'ab\\x00'
    """
    return row + b"\x00"
