"""How far the splits of a source function were read: the offsets that `collect` brought, and those restored (I8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rekindle.checkpoint.part_formats import SourceState, SplitState
from rekindle.serde import tagged_dumps, tagged_loads


class SplitOffsets:
    """One subtask's view. It sees the splits of all subtasks, and saves those that it has read and its share of those
    that nobody may have read yet.

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
        self._now = dict(self.restored)  # of the last record that an epoch took
        self._moved_at = dict(moved_at or {})  # of the splits that are saved here
        self._moving: dict[Any, Any] = {}  # since the last cut
        self._at: dict[int, dict[Any, Any]] = {}  # checkpoint -> offsets at its cut

    @staticmethod
    def of(state: SourceState, subtask: int, parallelism: int) -> SplitOffsets:
        """After a restore; `state` holds all splits, in the same order for every subtask."""
        restored = {_split_of(each): tagged_loads(each.position) for each in state.splits}
        return SplitOffsets(restored, {_split_of(each): each.moved_at for each in _kept(state, subtask, parallelism)})

    def move(self, offsets: Mapping[Any, Any]) -> None:
        """An epoch has taken records up to these offsets."""
        self._now.update(offsets)
        self._moving.update(offsets)

    def cut(self, checkpoint_id: int) -> None:
        """The offsets as they are belong to this checkpoint."""
        self._moved_at.update(dict.fromkeys(self._moving, checkpoint_id))
        self._moving.clear()
        self._at[checkpoint_id] = dict(self._now)

    def at(self, checkpoint_id: int) -> dict[Any, Any]:
        """The offsets at a cut that was not forgotten."""
        return self._at.get(checkpoint_id, {})

    def forget_before(self, checkpoint_id: int) -> None:
        """Nobody asks for older cuts any more."""
        self._at = {each: offsets for each, offsets in self._at.items() if each >= checkpoint_id}

    def state(self) -> SourceState:
        """What goes into a checkpoint."""
        return SourceState(
            [
                SplitState(None if split is None else tagged_dumps(split), tagged_dumps(offset), self._moved_at[split])
                for split, offset in self._now.items()
                if split in self._moved_at
            ]
        )


def _split_of(state: SplitState) -> Any:
    return None if state.split is None else tagged_loads(state.split)


def _kept(state: SourceState, subtask: int, parallelism: int) -> Sequence[SplitState]:
    """A position without a split belongs to its subtask; of the splits each is kept by one of the subtasks."""
    unsplit = [split for split in state.splits if split.split is None]
    return unsplit + [split for split in state.splits if split.split is not None][subtask::parallelism]
