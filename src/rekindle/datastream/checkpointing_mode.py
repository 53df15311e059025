"""The consistency guarantee of checkpoints."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """Exactly once or at least once. Here both give exactly once: a barrier ends an epoch on all channels alike.

    >>> CheckpointingMode.EXACTLY_ONCE.name
    'EXACTLY_ONCE'
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
