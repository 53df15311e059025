"""Inventories of a subtask's stored state: they decide what the next snapshot writes whole (I12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rekindle.checkpoint.compaction import RULES, Inventory, RewriteRules, Rewrites, due
from rekindle.checkpoint.manifest import SubtaskState


class Inventories:
    """The inventories of the last completed snapshot and of the snapshots under way.

    The task's thread asks for rewrites, the uploading thread records what was written. Aborted snapshots do not count:
    an inventory builds on the completed snapshot that its own snapshot's trigger named.
    """

    def __init__(self, rules: RewriteRules = RULES) -> None:
        self._rules = rules
        self._inventories: dict[int, Inventory] = {}
        self._restored: Inventory | None = None

    def restored(self, state: SubtaskState) -> None:
        """Record the state that the subtask begins with: the first snapshot may be a delta on top of it."""
        self._restored = Inventory.of(state.keyed, state.timers, state.file_bytes)

    def rewrites(self, base_id: int, keys: Mapping[int, int]) -> Rewrites | None:
        """Choose what a snapshot on top of `base_id` writes whole; `keys`: their number per key group now.

        None: the inventory of that snapshot is not known.
        """
        base = self._base(base_id)
        return due(base, keys, self._rules) if base is not None else None

    def recorder(
        self, snapshot_id: int, base_id: int | None, keys: Mapping[int, int]
    ) -> Callable[[SubtaskState], Iterable[str]]:
        """The function that the uploading thread calls once the snapshot is written, before it acknowledges.

        It tells the files that the subtask's whole state consists of.
        """
        base = self._base(base_id) if base_id is not None else None

        def record(written: SubtaskState) -> Iterable[str]:
            inventory = (base or Inventory()).after(written, keys, self._rules)
            self._inventories[snapshot_id] = inventory
            return inventory.file_bytes

        return record

    def completed(self, snapshot_id: int) -> None:
        """Drop the inventories of older snapshots: later ones build on this snapshot or a later one."""
        if snapshot_id not in self._inventories:
            return  # the restored snapshot, notified again, or a savepoint with which the job ends
        self._restored = None
        for older in [each for each in self._inventories if each < snapshot_id]:
            del self._inventories[older]

    def aborted(self, snapshot_id: int) -> None:
        """Drop the inventory of an aborted snapshot: no delta builds on it."""
        self._inventories.pop(snapshot_id, None)

    def _base(self, base_id: int) -> Inventory | None:
        # Before the first completion, only the restored snapshot can be the base.
        return self._inventories.get(base_id, self._restored)
