"""The promised targets, and whether this session reached them, computed from its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.keyed_count.contenders import SMALL, Family
from benchmarks.keyed_count.session import Row

MINIMUM_RECORDS_PER_SECOND = 600_000
GOAL_RECORDS_PER_SECOND = 1_000_000
LATENCY_LIMIT = 1.2
LATENCY_STAGES = 3


@dataclass(frozen=True, slots=True)
class Target:
    """A promise and its measurement; ``reached`` is None when nothing could be measured."""

    promise: str
    measured: str
    reached: bool | None


def ratio_target(
    rows: Sequence[Row], family: Family, title: str, keys: int, least: float, goal: float | None = None
) -> Target:
    """Compare Rekindle with the form of a peer that was the fastest in this session."""
    promise = f"≥ {least:g}× {title}'s best at {keys:,} keys" + (f" (goal {goal:g}×)" if goal else "")
    candidates = [
        row
        for row in rows
        if row.contender.family == family and row.keys == keys and row.pairs and not row.contender.information
    ]
    if not candidates:
        return Target(promise, "the peer did not run", None)
    best = max(candidates, key=lambda row: row.median)
    if best.ratio is None:
        return Target(promise, f"{best.contender.name}: {best.median:,.0f} records/s; Rekindle did not run", None)
    return Target(promise, f"{best.ratio:.2f}× ({best.contender.name})", best.ratio >= least)


def throughput_target(rows: Sequence[Row], name: str, keys: int) -> Target:
    promise = f"≥ {MINIMUM_RECORDS_PER_SECOND:,} records/s (goal {GOAL_RECORDS_PER_SECOND:,}): {name}, {keys:,} keys"
    row = next((row for row in rows if row.contender.name == name and row.keys == keys and row.pairs), None)
    if row is None:
        return Target(promise, "it did not run", None)
    return Target(promise, f"{row.median:,.0f} records/s (median)", row.median >= MINIMUM_RECORDS_PER_SECOND)


def latency_target(lines: Sequence[Mapping[str, Any]]) -> Target:
    """Compare the lines ``{"engine": "rekindle" | "spark", "stages": 3, "median_ms": …}``."""
    promise = (
        f"an empty epoch of {LATENCY_STAGES} stages ≤ {LATENCY_LIMIT}× the same Spark job with trivial Python tasks"
    )
    medians = {line.get("engine"): line.get("median_ms") for line in lines if line.get("stages") == LATENCY_STAGES}
    ours, sparks = medians.get("rekindle"), medians.get("spark")
    if not ours or not sparks:
        return Target(promise, "not measured", None)
    return Target(promise, f"{ours / sparks:.2f}× ({ours:.0f} ms and {sparks:.0f} ms)", ours / sparks <= LATENCY_LIMIT)


def all_targets(rows: Sequence[Row], key_counts: Sequence[int], latency: Sequence[Mapping[str, Any]]) -> list[Target]:
    targets = []
    for keys in key_counts:
        few = keys <= SMALL
        targets.append(ratio_target(rows, "bytewax", "Bytewax", keys, 2.5 if few else 6, 4 if few else None))
        targets.append(ratio_target(rows, "spark", "Spark", keys, 10))
        targets.append(ratio_target(rows, "pyflink", "PyFlink", keys, 80))
        targets += [throughput_target(rows, name, keys) for name in ("Rekindle, typed", "Rekindle, untyped")]
    return [*targets, latency_target(latency)]
