"""Offsets of the splits of a source function: those that `collect` brought, and those restored (I8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rekindle.checkpoint.part_formats import SourceState, SplitState
from rekindle.serde import tagged_dumps, tagged_loads


class SplitOffsets:
    """The offsets as one subtask sees them. It knows the splits of all subtasks, and saves the splits that it has read
    and its share of the others.

    >>> saved = SourceState([SplitState(tagged_dumps(name), tagged_dumps(5), 1) for name in "abcd"])
    >>> offsets = SplitOffsets.of(saved, subtask=1, parallelism=2)
    >>> offsets.restored
    {'a': 5, 'b': 5, 'c': 5, 'd': 5}
    >>> offsets.move({"a": 6})
    >>> offsets.cut(2)
    >>> [(tagged_loads(each.split), tagged_loads(each.position), each.moved_at) for each in offsets.state().splits]
    [('a', 6, 2), ('b', 5, 1), ('d', 5, 1)]
    """

    def __init__(self, restored: Mapping[Any, Any] | None = None, moved_at: Mapping[Any, int] | None = None) -> None:
        self.restored: dict[Any, Any] = dict(restored or {})
        self._now = dict(self.restored)  # offsets of the last records that an epoch took
        self._moved_at = dict(
            moved_at or {}
        )  # split -> checkpoint at which it last moved, for the splits that this subtask saves
        self._moving: dict[Any, Any] = {}  # offsets that moved since the last cut
        self._at: dict[int, dict[Any, Any]] = {}  # checkpoint -> offsets at its cut

    @staticmethod
    def of(state: SourceState, subtask: int, parallelism: int) -> SplitOffsets:
        """Return the offsets after a restore; `state` holds all splits, in the same order for every subtask."""
        restored = {_split_of(each): tagged_loads(each.position) for each in state.splits}
        return SplitOffsets(
            restored, {_split_of(each): each.moved_at for each in _saved_by(state, subtask, parallelism)}
        )

    def move(self, offsets: Mapping[Any, Any]) -> None:
        """Advance to these offsets: an epoch has taken the records up to them."""
        self._now.update(offsets)
        self._moving.update(offsets)

    def cut(self, checkpoint_id: int) -> None:
        """Keep the current offsets as those of a checkpoint."""
        self._moved_at.update(dict.fromkeys(self._moving, checkpoint_id))
        self._moving.clear()
        self._at[checkpoint_id] = dict(self._now)

    def at(self, checkpoint_id: int) -> dict[Any, Any]:
        """Return the offsets of a checkpoint's cut; empty if they were forgotten."""
        return self._at.get(checkpoint_id, {})

    def forget_before(self, checkpoint_id: int) -> None:
        """Forget the offsets of checkpoints before this one."""
        self._at = {each: offsets for each, offsets in self._at.items() if each >= checkpoint_id}

    def state(self) -> SourceState:
        """Return the offsets that this subtask saves in a checkpoint."""
        return SourceState(
            [
                SplitState(None if split is None else tagged_dumps(split), tagged_dumps(offset), self._moved_at[split])
                for split, offset in self._now.items()
                if split in self._moved_at
            ]
        )


def _split_of(state: SplitState) -> Any:
    return None if state.split is None else tagged_loads(state.split)


def _saved_by(state: SourceState, subtask: int, parallelism: int) -> Sequence[SplitState]:
    """Return the splits that a subtask saves: its own positions without a split, and every n-th of the other splits."""
    unsplit = [split for split in state.splits if split.split is None]
    return unsplit + [split for split in state.splits if split.split is not None][subtask::parallelism]
