"""In which Spark stage of an epoch each chain runs: the longest path in exchanges from the sources."""

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
