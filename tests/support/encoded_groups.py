"""Captured key groups as bytes, as a restore takes them."""

from __future__ import annotations

from collections.abc import Iterable

from rekindle.runtime.state.keyed_state_format import GroupCapture


def encoded(groups: Iterable[GroupCapture]) -> list[tuple[int, bytes]]:
    """(key group, part) of each group; a part that comes in pieces is joined."""
    parts = ((group.key_group, group.encode()) for group in groups)
    return [(group, part if isinstance(part, bytes) else b"".join(part)) for group, part in parts]
