"""Where an entry lies in the database: operator, key group, state, key, and for maps and lists the place within it.

Timers and indexes are not under key groups: timers are read in the order in which they fire, indexes by key.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

_PLACE: Final = Struct(">HHH")
#: No key group has this number.
_ALL_GROUPS: Final = 0xFFFF
_INDEX: Final = Struct(">Q")


def state_prefix(operator: int, key_group: int, state: int) -> bytes:
    """The prefix of a state's entries in a key group."""
    return _PLACE.pack(operator, key_group, state)


def index_bytes(index: int) -> bytes:
    """The place of an element in a list."""
    return _INDEX.pack(index)


def ungrouped_prefix(operator: int, number: int) -> bytes:
    """The prefix of entries that are not under key groups: of one time domain, or of one index."""
    return _PLACE.pack(operator, _ALL_GROUPS, number)
