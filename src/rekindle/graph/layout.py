"""Layout of the plan: the stage of each chain, the slot of each subtask, the default number of key groups."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.graph.nodes import StreamEdge


def assign_stages(chains: Sequence[tuple[int, ...]], edges: Sequence[StreamEdge]) -> list[int]:
    """The stage of each chain; all chains at one depth share one shuffle.

    >>> from rekindle.graph.nodes import Partitioning
    >>> edge = StreamEdge(0, 0, 1, 0, Partitioning.KEY, None)
    >>> assign_stages([(0,), (1,)], [edge])
    [0, 1]
    """
    chain_of = {node: index for index, members in enumerate(chains) for node in members}
    stages = [0] * len(chains)
    # Heads are in topological order, so every chain's inputs have their stage before it does.
    for index, members in enumerate(chains):
        incoming = [chain_of[edge.source] for edge in edges if edge.target == members[0]]
        stages[index] = max((stages[source] + 1 for source in incoming), default=0)
    return stages


def place(parallelisms: Sequence[int]) -> tuple[int, dict[tuple[int, int], int]]:
    """The number of slots, and the slot of each (chain, subtask).

    Subtask i of a chain with the highest parallelism is in slot i, so that forward and keyed records often stay in
    their slot. Each narrower chain starts at the slot after the last of the narrower chain before it.

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


#: Flink's bounds: few key groups make rescaling uneven, many make every snapshot more expensive.
LOWER_BOUND, UPPER_BOUND = 128, 1 << 15


def default_max_parallelism(parallelism: int) -> int:
    """One and a half times the parallelism, as a power of two, between 128 and 32768.

    >>> default_max_parallelism(2), default_max_parallelism(100), default_max_parallelism(40_000)
    (128, 256, 32768)
    """
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), LOWER_BOUND), UPPER_BOUND)
