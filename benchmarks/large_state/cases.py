"""What is measured: state loops and jobs, each in a process of its own, in the whole and in the quick form."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.large_state.accesses import Access

#: A slot's share: a job has two slots.
SLOTS = 2
FEW_KEYS = 50_000
#: The in-memory backend needs some 400 bytes per key: more would not fit into 10 GB.
MOST_KEYS_IN_MEMORY = 20_000_000


@dataclass(frozen=True)
class LoopCase:
    """A state loop: the keys of one slot, and its budget."""

    name: str
    backends: tuple[str, ...]
    keys: int
    access: Access
    budget_mb: int
    records: int
    #: Records before the measurement, if half as many as in it do not fill the cache.
    warm_records: int = 0

    def arguments(self, folder: Path) -> list[str]:
        """The arguments of its process."""
        sizes = ["--keys", self.keys, "--budget-mb", self.budget_mb, "--records", self.records]
        warm = ["--warm-records", max(self.warm_records, self.records // 2)]
        chosen = ["--backends", *self.backends, "--access", self.access.value, "--parts", folder]
        return ["benchmarks.large_state.state_loop", *map(str, (*chosen, *sizes, *warm))]


@dataclass(frozen=True)
class JobCase:
    """A job of two slots."""

    backend: str
    keys: int
    budget_mb: int
    records: int

    @property
    def name(self) -> str:
        """What the table calls it."""
        budget = f", {self.budget_mb} MB" if self.backend == "rocksdb" else ""
        return f"{self.backend}{budget}"

    def arguments(self, folder: Path) -> list[str]:
        """The arguments of its process."""
        sizes = ["--keys", self.keys, "--budget-mb", self.budget_mb, "--records", self.records]
        chosen = ["--backend", self.backend, "--directory", folder]
        return ["benchmarks.large_state.sized_job", *map(str, (*chosen, *sizes))]


@dataclass(frozen=True)
class Plan:
    """All cases of a form. `tight` is the budget that the state exceeds ten times."""

    tight: LoopCase
    alone: LoopCase
    uniform: LoopCase
    hot: LoopCase
    few_keys: LoopCase
    many_keys: LoopCase
    jobs: list[JobCase] = field(default_factory=list)

    def loops(self) -> list[LoopCase]:
        """The state loops; the tight one three times, for a median."""
        return [self.tight, self.few_keys, self.hot, self.tight, self.alone, self.uniform, self.tight, self.many_keys]


def plan(most_keys: int, tight_mb: int, roomy_mb: int, records: int) -> Plan:
    """The cases for so many keys in a job, with budgets per slot."""
    both = ("hashmap", "rocksdb") if most_keys <= MOST_KEYS_IN_MEMORY else ("rocksdb",)
    keys = most_keys // SLOTS
    share_mb = 8 * keys // FEW_KEYS  # eight megabytes are the least that RocksDB gets
    filling = 3 * keys // 2  # a cache that is not full writes nothing back
    loops = {
        "tight": LoopCase("state 10× the budget, Zipf", both, keys, Access.ZIPF, tight_mb, records),
        "alone": LoopCase("the same, RocksDB alone", ("rocksdb",), keys, Access.ZIPF, tight_mb, records),
        "uniform": LoopCase("state 10× the budget, uniform", both, keys, Access.UNIFORM, tight_mb, records // 2),
        "hot": LoopCase("hot keys, all in the cache", both, keys // 5, Access.HOT, max(64, tight_mb), records),
        "few_keys": LoopCase("few keys, a sixth cached", ("rocksdb",), FEW_KEYS, Access.ZIPF, 8, records),
        "many_keys": LoopCase("many keys, a sixth cached", ("rocksdb",), keys, Access.ZIPF, share_mb, records, filling),
    }
    sizes = [most_keys // 100, most_keys // 10, most_keys]
    jobs = [JobCase(backend, size, roomy_mb, records) for size in sizes for backend in both]
    return Plan(**loops, jobs=[*jobs, JobCase("rocksdb", most_keys, tight_mb, records)])


WHOLE = plan(10_000_000, tight_mb=64, roomy_mb=512, records=1_000_000)
QUICK = plan(1_000_000, tight_mb=8, roomy_mb=64, records=200_000)


def measure(arguments: list[str]) -> dict[str, Any]:
    """Run one process and read its line of JSON; its error is the benchmark's."""
    done = subprocess.run([sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"python -m {' '.join(arguments)} ended with {done.returncode}: look at its message above.")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
