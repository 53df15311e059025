"""What of a task itself belongs to the cut: its channels and writers, under names that outlive the plan's numbers.

A restored program may have other operators beside these ones, and so other numbers, and other parallelisms around a
task whose own is the same: what was known of a channel holds only if all channels of its edge are as they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rekindle.graph.nodes import JobPlan
from rekindle.runtime.exchange.writers import EdgeWriter
from rekindle.runtime.watermarks import WatermarkValve


def edge_names(plan: JobPlan) -> dict[int, str]:
    """Edge -> the operators on both sides, and which of several edges between them it is."""
    seen: Counter[str] = Counter()
    names: dict[int, str] = {}
    for edge in plan.edges:
        ends = plan.nodes[edge.source].uid, plan.nodes[edge.target].uid
        name = "/".join((*ends, str(edge.input_index), edge.tag or ""))
        names[edge.id] = f"{name}/{seen[name]}"
        seen[name] += 1
    return names


def valve_position(valve: WatermarkValve, names: Mapping[int, str]) -> list[Any]:
    """The task's watermark, and by edge what each channel has said."""
    current, channels = valve.position()
    by_name: dict[str, list[Any]] = {}
    for edge, *channel in channels:
        by_name.setdefault(names[edge], []).append(channel)
    return [current, by_name]


def seek_valve(valve: WatermarkValve, names: Mapping[int, str], position: Sequence[Any]) -> None:
    """Go on from there with the edges that have the channels they had; the channels of others begin anew."""
    current, by_name = position
    known: list[list[Any]] = []
    for edge, sources in valve.sources().items():
        saved = by_name.get(names[edge], [])
        if {source for source, *_ in saved} == sources:
            known.extend([edge, *channel] for channel in saved)
    valve.seek([current, known])


def writer_positions(writers: Sequence[EdgeWriter], names: Mapping[int, str]) -> dict[str, Any]:
    """By edge: which channel comes next (I1)."""
    positions = {names[writer.edge.edge]: writer.position() for writer in writers}
    return {name: position for name, position in positions.items() if position is not None}


def seek_writers(writers: Sequence[EdgeWriter], names: Mapping[int, str], positions: Mapping[str, Any]) -> None:
    """Go on from there."""
    for writer in writers:
        position = positions.get(names[writer.edge.edge])
        if position is not None:
            writer.seek(position)
