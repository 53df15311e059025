"""A task's checkpoint barriers: the last one that passed, and the checkpoints that were aborted before theirs came."""

from __future__ import annotations


class Barriers:
    """Barriers of one task. Checkpoint ids rise, and barriers come in their order.

    >>> barriers = Barriers()
    >>> barriers.aborted(7)
    >>> barriers.is_aborted(7)
    True
    >>> barriers.passed(7)
    >>> barriers.is_aborted(7)
    False
    """

    def __init__(self) -> None:
        self._last = 0
        self._aborted_ahead: set[int] = set()

    def aborted(self, checkpoint_id: int) -> None:
        """A checkpoint was aborted: remember it if its barrier is still to come."""
        if checkpoint_id > self._last:
            self._aborted_ahead.add(checkpoint_id)

    def is_aborted(self, checkpoint_id: int) -> bool:
        """Whether the checkpoint was aborted before its barrier came."""
        return checkpoint_id in self._aborted_ahead

    def passed(self, checkpoint_id: int) -> None:
        """The barrier has passed: forget the aborts up to it."""
        self._last = checkpoint_id
        self._aborted_ahead = {each for each in self._aborted_ahead if each > checkpoint_id}
