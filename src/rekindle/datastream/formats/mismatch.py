"""`Mismatch`: a value that does not fit its type, with the path to it, before it becomes a sentence for people."""

from __future__ import annotations

from typing import Any

_SHOWN_CHARACTERS = 100


class Mismatch(Exception):
    """A value that does not fit. The path to it grows from the inside out as the exception passes each level.

    >>> str(Mismatch("must be Integer, not 'x'").inside(2).inside("counts").inside("order"))
    "field 'order.counts[2]' must be Integer, not 'x'"
    >>> str(Mismatch("must be Integer, not 'x'"))
    "it must be Integer, not 'x'"
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = ""

    def inside(self, part: str | int) -> Mismatch:
        """Add a field's name, or an element's index, in front of the path."""
        here = f"[{part}]" if isinstance(part, int) else part
        separator = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{here}{separator}{self.path}"
        return self

    def __str__(self) -> str:
        return f"field '{self.path}' {self.problem}" if self.path else f"it {self.problem}"


def must_be(expected: Any, value: Any) -> Mismatch:
    """Return the mismatch of a value that has another type than expected, or is out of its range.

    >>> must_be("Integer", "abc").problem
    "must be Integer, not 'abc'"
    """
    return Mismatch(f"must be {expected}, not {shown(repr(value))}")


def shown(text: str) -> str:
    """Return the beginning of a text for an error message.

    >>> shown("x" * 1000)[-6:]
    'xxx...'
    """
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def shown_bytes(message: bytes) -> str:
    """Return the beginning of a message for an error message.

    >>> shown_bytes(b"a\\xff")
    'a\\\\xff'
    """
    return shown(bytes(message[: 4 * _SHOWN_CHARACTERS]).decode("utf-8", "backslashreplace"))
