"""The contenders: engines, their forms, and their numbers of records, for timed runs of 5 to 20 s on two cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Family = Literal["rekindle", "spark", "pyflink", "bytewax", "pathway"]
Calls = Literal["per record", "per key and batch", "built in"]

SMALL = 1_000
"""Up to this many keys a contender gets its first number of records, above it the second."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One engine in one form."""

    name: str
    family: Family
    calls: Calls
    """How often the user's function is called: fewer calls than records are less work than Rekindle's."""
    arguments: tuple[str, ...]
    records_few_keys: int
    records_many_keys: int
    runs: int = 1
    information: bool = False
    """Shown, but no target is measured against it."""
    java: bool = False

    @property
    def module(self) -> str:
        if self.family == "rekindle":
            return "benchmarks.keyed_count.engine"
        return f"benchmarks.keyed_count.peers.{self.family}"

    def records(self, keys: int, scale: float) -> int:
        return max(20_000, int(scale * (self.records_few_keys if keys <= SMALL else self.records_many_keys)))


TYPED = Contender("Rekindle, typed", "rekindle", "per record", ("--typed",), 8_000_000, 8_000_000)
UNTYPED = Contender("Rekindle, untyped", "rekindle", "per record", ("--untyped",), 8_000_000, 8_000_000, runs=2)

PEERS = (
    Contender("Bytewax, stateful_batch, 1 process", "bytewax", "per key and batch", (), 50_000_000, 5_000_000, runs=2),
    Contender(
        "Bytewax, stateful_batch, 2 processes",
        "bytewax",
        "per key and batch",
        ("--processes", "2"),
        8_000_000,
        5_000_000,
        runs=2,
    ),
    Contender(
        "Bytewax, stateful, 1 process", "bytewax", "per record", ("--form", "record"), 30_000_000, 4_000_000, runs=2
    ),
    Contender(
        "Bytewax, stateful, 2 processes",
        "bytewax",
        "per record",
        ("--form", "record", "--processes", "2"),
        8_000_000,
        5_000_000,
        runs=2,
    ),
    Contender("Bytewax, key_on and stateful_map", "bytewax", "per record", ("--form", "map"), 5_000_000, 3_000_000),
    Contender(
        "Bytewax, stateful_batch, recovery off",
        "bytewax",
        "per key and batch",
        ("--no-recovery",),
        50_000_000,
        5_000_000,
        information=True,
    ),
    Contender(
        "Pathway, stateful_many", "pathway", "per key and batch", ("--reducer", "many"), 12_000_000, 6_000_000, runs=2
    ),
    Contender(
        "Pathway, stateful_single", "pathway", "per record", ("--reducer", "single"), 12_000_000, 6_000_000, runs=2
    ),
    Contender(
        "Pathway, count()", "pathway", "built in", ("--reducer", "count"), 16_000_000, 10_000_000, information=True
    ),
    Contender(
        "Spark, transformWithStateInPandas",
        "spark",
        "per key and batch",
        ("--form", "pandas"),
        1_250_000,
        500_000,
        java=True,
    ),
    Contender(
        "Spark, transformWithState, rows",
        "spark",
        "per key and batch",
        ("--form", "rows"),
        1_000_000,
        500_000,
        java=True,
    ),
    Contender(
        "Spark, transformWithState, call per record",
        "spark",
        "per record",
        ("--form", "per-record", "--batch", "20000"),
        60_000,
        60_000,
        java=True,
    ),
    Contender("PyFlink, process mode", "pyflink", "per record", ("--mode", "process"), 600_000, 250_000, java=True),
    Contender(
        "PyFlink, process mode, loopback", "pyflink", "per record", ("--mode", "loopback"), 600_000, 250_000, java=True
    ),
    Contender("PyFlink, thread mode", "pyflink", "per record", ("--mode", "thread"), 250_000, 250_000, java=True),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One timed run, as the contender reported it."""

    contender: Contender
    keys: int
    records: int
    seconds: float
    records_per_second: float
    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that gave no result, and why."""

    contender: Contender
    keys: int
    reason: str
