"""The guarantee of a checkpoint."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """Exactly once, or at least once. Barriers are always aligned here, so both give exactly once (I19).

    >>> CheckpointingMode.EXACTLY_ONCE.name
    'EXACTLY_ONCE'
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
