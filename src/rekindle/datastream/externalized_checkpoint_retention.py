"""Whether checkpoints are kept when a job is cancelled."""

from __future__ import annotations

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """Whether a cancelled job deletes or retains its checkpoints. A job that fails always retains them.

    >>> ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION.name
    'RETAIN_ON_CANCELLATION'
    """

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
