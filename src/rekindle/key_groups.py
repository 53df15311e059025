"""Key groups and the subtasks that own them: Flink's formulas (I11)."""

from __future__ import annotations


def key_group_range(max_parallelism: int, parallelism: int, subtask: int) -> range:
    """The key groups that a subtask owns, by the formula that also routes records.

    >>> [key_group_range(128, 3, i) for i in range(3)]
    [range(0, 43), range(43, 86), range(86, 128)]
    """
    assert 0 <= subtask < parallelism <= max_parallelism, (subtask, parallelism, max_parallelism)
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    end = ((subtask + 1) * max_parallelism - 1) // parallelism
    return range(start, end + 1)


def subtask_for_key_group(group: int, max_parallelism: int, parallelism: int) -> int:
    """The subtask that owns a key group: the inverse of `key_group_range`."""
    return group * parallelism // max_parallelism
