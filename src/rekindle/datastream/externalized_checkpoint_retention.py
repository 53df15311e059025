"""What happens to checkpoints when a job is cancelled."""

from __future__ import annotations

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """Delete checkpoints on cancellation, or retain them; a job that fails keeps them in any case.

    >>> ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION.name
    'RETAIN_ON_CANCELLATION'
    """

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
