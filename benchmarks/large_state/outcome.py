"""The tables: state loops, jobs, and the targets with what was reached."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from benchmarks.large_state.cases import JobCase, LoopCase, Plan

#: A budget of 64 MB means MiB; memory is shown in 10^6 bytes.
_MIB = 1.048576
Found = dict[str, Any]


@dataclass
class Outcome:
    """What was measured, by case; a case that ran several times has several entries."""

    loops: dict[str, list[Found]] = field(default_factory=dict)
    jobs: dict[tuple[str, int], Found] = field(default_factory=dict)
    spark: Found | None = None

    def add_loop(self, case: LoopCase, found: Found) -> None:
        self.loops.setdefault(case.name, []).append(found)

    def add_job(self, case: JobCase, found: Found) -> None:
        self.jobs[case.name, case.keys] = found


def loop_us(found: Found, backend: str) -> float:
    """µs of processor time per record. RocksDB's compaction goes on while the other backend has its turn."""
    own = found[backend]
    if backend == "hashmap":
        return float(own["thread_us"])
    other = found.get("hashmap", {})
    return float(own["record_us"] + other.get("record_us", 0.0) - other.get("thread_us", 0.0))


def loop_ratio(found: Found) -> float:
    """RocksDB over the in-memory backend."""
    return loop_us(found, "rocksdb") / loop_us(found, "hashmap")


def loop_table(plan: Plan, outcome: Outcome) -> Table:
    """One row per state loop."""
    table = Table(title="State loop of one slot, µs of processor time per record", title_justify="left")
    table.add_column("loop")
    headings = ("keys", "budget, MB", "in memory", "RocksDB", "ratio", "restore, µs per key", "delta / changed", "runs")
    for heading in headings:
        table.add_column(heading, justify="right")
    for case in dict.fromkeys(plan.loops()):
        runs = outcome.loops.get(case.name)
        if runs:
            table.add_row(case.name, f"{case.keys:,}", str(case.budget_mb), *_loop_figures(case, runs), str(len(runs)))
    return table


def _loop_figures(case: LoopCase, runs: list[Found]) -> list[str]:
    both = len(case.backends) > 1
    return [
        _median(loop_us(run, "hashmap") for run in runs) if both else "",
        _median(loop_us(run, "rocksdb") for run in runs),
        _median(map(loop_ratio, runs)) + "×" if both else "",
        _median(run["rocksdb"]["restore_us_per_key"] for run in runs),
        _median(run["rocksdb"]["delta_bytes"] / run["changed_bytes"] for run in runs),
    ]


def _median(values: Any) -> str:
    return f"{statistics.median(values):.2f}"


def job_table(outcome: Outcome) -> Table:
    """One row per job."""
    table = Table(title="Jobs of two slots, checkpoints every 5 s", title_justify="left")
    headings = (
        "keys",
        "backend",
        "Zipf, µs (slots)",
        "uniform, µs (slots)",
        "Zipf, records/s",
        "checkpoint, ms (sync)",
        "MB",
        "increment / changed",
        "stored, MB",
        "restore, µs per key",
        "s",
        "RSS of a slot, MB (idle)",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for (name, keys), found in sorted(outcome.jobs.items(), key=lambda item: (item[0][1], item[0][0])):
        table.add_row(f"{keys:,}", name, *_job_figures(found))
    return table


def _job_figures(found: Found) -> list[str]:
    zipf, uniform = found["zipf"], found["uniform"]
    taken = "checkpoint_ms" in zipf
    return [
        f"{zipf['all_us']:.1f} ({zipf['slots_us']:.1f})",
        f"{uniform['all_us']:.1f} ({uniform['slots_us']:.1f})",
        f"{zipf['records_per_second']:,.0f}",
        f"{zipf['checkpoint_ms']:,.0f} ({zipf['sync_ms']:,.0f})" if taken else "",
        f"{zipf['checkpoint_mb']:,.1f}" if taken else "",
        f"{zipf['increment_of_changed']:.2f}" if taken else "",
        f"{found['stored_mb']:,.0f}",
        f"{found['restore_us_per_key']:.2f}",
        f"{found['restore_s']:.1f}",
        f"{found['peak_mb']:.0f} ({found['idle_mb']:.0f})",
    ]


@dataclass(frozen=True)
class Target:
    """A figure and its bound."""

    name: str
    value: float | None
    bound: float
    unit: str = "×"

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        return "reached" if self.value <= self.bound else "missed"


def targets(plan: Plan, outcome: Outcome) -> list[Target]:
    """The targets of issue 14."""
    tight = outcome.loops.get(plan.tight.name, [])
    pairs = [run for run in tight if "hashmap" in run]
    hot = [run for run in outcome.loops.get(plan.hot.name, []) if "hashmap" in run]
    increments = [run["rocksdb"]["delta_bytes"] / run["changed_bytes"] for run in tight]
    increments += [job["zipf"]["increment_of_changed"] for job in _rocks(outcome) if "checkpoint_ms" in job["zipf"]]
    alone = outcome.loops.get(plan.alone.name, [])
    restores = [run["rocksdb"]["restore_us_per_key"] for run in alone]
    return [
        Target("job, Zipf, state 10× the budget, over in memory", _job_ratio(plan, outcome), 3),
        Target("state loop, the same", statistics.median(map(loop_ratio, pairs)) if pairs else None, 4),
        Target("many keys over 50,000 in a slot, a sixth cached", _growth(plan, outcome), 3),
        Target("hot keys, over in memory", statistics.median(map(loop_ratio, hot)) if hot else None, 1.3),
        Target("RSS of a slot without an idle one, of the budget", _memory(outcome), 1.2),
        Target("restore, µs per key", statistics.median(restores) if restores else None, 1.5, " µs"),
        Target("increments, of what changed, the worst", max(increments, default=None), 2.5),
    ]


def _rocks(outcome: Outcome) -> list[Found]:
    return [job for (name, _), job in outcome.jobs.items() if name.startswith("rocksdb")]


def _job_ratio(plan: Plan, outcome: Outcome) -> float | None:
    case = plan.jobs[-1]
    ours, other = outcome.jobs.get((case.name, case.keys)), outcome.jobs.get(("hashmap", case.keys))
    return ours["zipf"]["all_us"] / other["zipf"]["all_us"] if ours and other else None


def _growth(plan: Plan, outcome: Outcome) -> float | None:
    many, few = (outcome.loops.get(case.name) for case in (plan.many_keys, plan.few_keys))
    return loop_us(many[0], "rocksdb") / loop_us(few[0], "rocksdb") if many and few else None


def _memory(outcome: Outcome) -> float | None:
    """The worst share of the budget that a slot used beyond an idle one, also after a restore."""
    shares = [
        (max(job["peak_mb"], job["restored_peak_mb"]) - job["idle_mb"]) / (job["budget_mb"] * _MIB)
        for job in _rocks(outcome)
    ]
    return max(shares, default=None)


def target_table(found: list[Target]) -> Table:
    """One row per target."""
    table = Table(title="Targets", title_justify="left")
    table.add_column("target")
    for heading in ("measured", "to reach", ""):
        table.add_column(heading, justify="right")
    colours = {"reached": "green", "missed": "red", "not measured": "yellow"}
    for target in found:
        measured = "" if target.value is None else f"{target.value:.2f}{target.unit}"
        verdict = f"[{colours[target.verdict]}]{target.verdict}[/]"
        table.add_row(target.name, measured, f"≤ {target.bound:g}{target.unit}", verdict)
    return table
