"""Which slot hosts which subtask: a table in the plan, so that narrow chains spread."""

from __future__ import annotations

from collections.abc import Sequence


def place(parallelisms: Sequence[int]) -> tuple[int, dict[tuple[int, int], int]]:
    """The number of slots, and the slot of each (chain, subtask).

    Subtask i of a full-width chain lives in slot i, so that forward and keyed data often stays in its slot. Narrower
    chains begin where the last of them ended.

    >>> place([1, 2, 1])
    (2, {(0, 0): 0, (1, 0): 0, (1, 1): 1, (2, 0): 1})
    """
    slots = max(parallelisms)
    table: dict[tuple[int, int], int] = {}
    offset = 0
    for chain, parallelism in enumerate(parallelisms):
        narrow = parallelism < slots
        for subtask in range(parallelism):
            table[chain, subtask] = (subtask + offset) % slots if narrow else subtask
        if narrow:
            offset += parallelism
    return slots, table
