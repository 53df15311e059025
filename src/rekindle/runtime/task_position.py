"""A task's position at the cut: the state of its input channels and writers, under edge names instead of numbers.

A restored program may have more operators, and so other edge numbers. Tasks around a task may have another parallelism,
even if its own is unchanged: the state of a channel is restored only if its edge has the same channels as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rekindle.graph.nodes import JobPlan
from rekindle.runtime.exchange.writers import EdgeWriter
from rekindle.runtime.watermarks import WatermarkValve


def edge_names(plan: JobPlan) -> dict[int, str]:
    """Edge -> name: the uids on both sides, input and tag, and a number among edges that have these in common."""
    seen: Counter[str] = Counter()
    names: dict[int, str] = {}
    for edge in plan.edges:
        ends = plan.nodes[edge.source].uid, plan.nodes[edge.target].uid
        name = "/".join((*ends, str(edge.input_index), edge.tag or ""))
        names[edge.id] = f"{name}/{seen[name]}"
        seen[name] += 1
    return names


def valve_position(valve: WatermarkValve, names: Mapping[int, str]) -> list[Any]:
    """The task's watermark, and edge name -> state of its channels."""
    current, channels = valve.position()
    by_name: dict[str, list[Any]] = {}
    for edge, *channel in channels:
        by_name.setdefault(names[edge], []).append(channel)
    return [current, by_name]


def seek_valve(
    valve: WatermarkValve, names: Mapping[int, str], position: Sequence[Any], anew: Collection[str] = ()
) -> None:
    """Restore the watermark and the channels of edges with the same channels as before; other channels begin anew.

    So do the channels of the edges `anew`, whose senders get other records than before.
    """
    current, by_name = position
    known: list[list[Any]] = []
    for edge, sources in valve.sources().items():
        saved = [] if names[edge] in anew else by_name.get(names[edge], [])
        if {source for source, *_ in saved} == sources:
            known.extend([edge, *channel] for channel in saved)
    valve.seek([current, known])


def writer_positions(writers: Sequence[EdgeWriter], names: Mapping[int, str]) -> dict[str, Any]:
    """Edge name -> the writer's position, that is the channel that comes next (I1)."""
    positions = {names[writer.edge.edge]: writer.position() for writer in writers}
    return {name: position for name, position in positions.items() if position is not None}


def seek_writers(writers: Sequence[EdgeWriter], names: Mapping[int, str], positions: Mapping[str, Any]) -> None:
    """Restore the positions of the writers."""
    for writer in writers:
        position = positions.get(names[writer.edge.edge])
        if position is not None:
            writer.seek(position)
