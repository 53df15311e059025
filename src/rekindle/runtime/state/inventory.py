"""What a subtask knows of its state in the store: enough to decide what the next snapshot writes whole (I12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rekindle.checkpoint.manifest import SubtaskState
from rekindle.checkpoint.rescale import SubtaskRestore
from rekindle.checkpoint.rewrites import RULES, Inventory, RewriteRules, due


@dataclass(frozen=True)
class SnapshotPlan:
    """What a snapshot writes whole; everything else is a delta on top of a completed one."""

    key_groups: list[int]
    timers: bool
    #: Key groups of which timers are stored: whoever writes timers whole replaces them.
    timer_groups: frozenset[int]


class StoredSnapshots:
    """The inventories of the last completed snapshot and of those on their way.

    The task's thread plans, the uploading thread records what was written. Aborted snapshots do not count: an inventory
    stands on the completed one that its snapshot's trigger named.
    """

    def __init__(self, rules: RewriteRules = RULES) -> None:
        self._rules = rules
        self._inventories: dict[int, Inventory] = {}
        self._restored: Inventory | None = None

    def restored(self, found: SubtaskRestore) -> None:
        """The subtask begins with this; the first snapshot may stand on it."""
        self._restored = Inventory.of(found.keyed, found.timers, found.file_bytes)

    def plan(self, base_id: int, keys: Mapping[int, int]) -> SnapshotPlan | None:
        """For a snapshot on top of `base_id`; `keys` per key group now. None: nothing is known of that one."""
        base = self._base(base_id)
        if base is None:
            return None
        rewrites = due(base, keys, self._rules)
        return SnapshotPlan(rewrites.key_groups, rewrites.timers, frozenset(base.timers))

    def recorder(
        self, snapshot_id: int, base_id: int | None, keys: Mapping[int, int]
    ) -> Callable[[SubtaskState], None]:
        """What the uploading thread calls when the snapshot is written, before anybody is told."""
        base = self._base(base_id) if base_id is not None else None

        def record(written: SubtaskState) -> None:
            self._inventories[snapshot_id] = (base or Inventory()).after(written, keys, self._rules)

        return record

    def completed(self, snapshot_id: int) -> None:
        """Later snapshots stand on this one or a later one."""
        if snapshot_id not in self._inventories:
            return  # the one that was restored, told again, or a savepoint with which the job ends
        self._restored = None
        for older in [each for each in self._inventories if each < snapshot_id]:
            del self._inventories[older]

    def aborted(self, snapshot_id: int) -> None:
        """Nothing will stand on it."""
        self._inventories.pop(snapshot_id, None)

    def _base(self, base_id: int) -> Inventory | None:
        # Before the first completion the only thing to stand on is what was restored.
        return self._inventories.get(base_id, self._restored)
