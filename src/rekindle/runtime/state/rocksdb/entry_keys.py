"""Where an entry lies in the database: operator, key group, state, key, and for maps and lists the place within it."""

from __future__ import annotations

from struct import Struct
from typing import Final

_PLACE: Final = Struct(">HHH")
_INDEX: Final = Struct(">Q")


def state_prefix(operator: int, key_group: int, state: int) -> bytes:
    """The prefix of a state's entries in a key group."""
    return _PLACE.pack(operator, key_group, state)


def index_bytes(index: int) -> bytes:
    """The place of an element in a list."""
    return _INDEX.pack(index)
