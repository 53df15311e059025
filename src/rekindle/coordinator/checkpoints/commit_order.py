"""The order of notifications: sources hear of a complete checkpoint when every awaited sink has committed it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rekindle.coordinator.checkpoints.types import NotifyComplete, Subtask


@dataclass
class CommitOrder:
    """The complete checkpoints of an attempt that its sources have not heard of.

    >>> order = CommitOrder([(1, 0), (1, 1)])
    >>> order.completed(NotifyComplete(7, acknowledge=False))
    >>> order.committed((1, 0), 7), order.committed((1, 1), 7)
    (None, NotifyComplete(id=7, acknowledge=False))

    A sink that commits a checkpoint's output only after another checkpoint speaks for both.

    >>> order.completed(NotifyComplete(8, acknowledge=False))
    >>> order.completed(NotifyComplete(9, acknowledge=True))
    >>> order.committed((1, 0), 8), order.committed((1, 0), 9), order.committed((1, 1), 9)
    (None, None, NotifyComplete(id=9, acknowledge=True))
    """

    awaited: Iterable[Subtask] = ()
    _waiting: list[NotifyComplete] = field(default_factory=list)  # by rising id

    def __post_init__(self) -> None:
        self._committed = dict.fromkeys(self.awaited, 0)

    @property
    def sources_wait(self) -> bool:
        """Whether the sources wait for any sink at all."""
        return bool(self._committed)

    def completed(self, notice: NotifyComplete) -> None:
        """A checkpoint is complete, and the sinks are told to commit."""
        if self.sources_wait:
            self._waiting.append(notice)

    def committed(self, subtask: Subtask, checkpoint_id: int) -> NotifyComplete | None:
        """A sink has committed everything up to a checkpoint; return the newest notice that the sources may get."""
        if subtask in self._committed:
            self._committed[subtask] = max(self._committed[subtask], checkpoint_id)
        through = min(self._committed.values(), default=0)
        ready = [each for each in self._waiting if each.id <= through]
        self._waiting = [each for each in self._waiting if each.id > through]
        return ready[-1] if ready else None
