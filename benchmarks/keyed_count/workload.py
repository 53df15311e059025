"""The input that every engine counts, and the clock with which every engine is measured.

Plain Python without dependencies: each peer imports this module in an environment of its own.

Record ``i`` is ``(key, 1)``. The keys are pseudo-random and the same in every engine; a block of a million records is
made before the clock starts and emitted again and again, so that no engine is measured while it makes strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

BLOCK_RECORDS = 1_000_000
"""The input repeats after this many records."""

WARM_UP_SHARE = 0.2
"""The clock starts when this share of the records has been processed: first touches of keys and JIT are over."""

LEAST_SECONDS = 0.2
"""A shorter timed part is too short to measure."""

_TWO_32 = 2**32


def key_number(index: int, keys: int) -> int:
    """Return the number of the key of record ``index``: a multiplicative hash, mixed twice.

    >>> [key_number(index, 1000) for index in range(4)]
    [0, 13, 70, 494]
    """
    mixed = (index % BLOCK_RECORDS) * 2654435761 % _TWO_32
    mixed ^= mixed >> 15
    mixed = mixed * 668265263 % _TWO_32
    mixed ^= mixed >> 13
    return mixed % keys


def key_sql(index_column: str, keys: int) -> str:
    """Return the key of a record as a Spark SQL expression: the same keys as ``key_number``, made inside the JVM."""
    first = f"((({index_column} % {BLOCK_RECORDS}L) * 2654435761L) % {_TWO_32}L)"
    second = f"((({first} ^ shiftrightunsigned({first}, 15)) * 668265263L) % {_TWO_32}L)"
    third = f"({second} ^ shiftrightunsigned({second}, 13))"
    return f"concat('k', cast({third} % {keys}L as string))"


def block(keys: int) -> list[tuple[str, int]]:
    """Return the block of records; records of one key are one shared tuple."""
    shared = [(f"k{number}", 1) for number in range(keys)]
    return [shared[key_number(index, keys)] for index in range(BLOCK_RECORDS)]


@dataclass(frozen=True, slots=True)
class Mark:
    """At ``seconds`` on the clock, ``records`` records had been processed."""

    seconds: float
    records: int


@dataclass(frozen=True, slots=True)
class Steady:
    """The timed part of a run: ``records`` in ``seconds``, after the warm-up."""

    records: int
    seconds: float

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds


def steady(marks: Sequence[Mark]) -> Steady:
    """Return the part after the warm-up of a run with the progress ``marks``.

    >>> steady([Mark(7.0, 100), Mark(8.0, 300), Mark(10.0, 1100)])
    Steady(records=800, seconds=2.0)
    """
    total = marks[-1].records
    begin = next(mark for mark in marks if mark.records >= total * WARM_UP_SHARE)
    if begin is marks[-1]:
        raise ValueError(
            "All records were processed in one step: give more records, so that some come after the warm-up."
        )
    return Steady(total - begin.records, marks[-1].seconds - begin.seconds)


def merged(subtasks: Iterable[Sequence[Mark]]) -> list[Mark]:
    """Return the progress of several subtasks as one: at each moment the sum of their records.

    >>> merged([[Mark(1.0, 10), Mark(3.0, 30)], [Mark(2.0, 5)]])
    [Mark(seconds=1.0, records=10), Mark(seconds=2.0, records=15), Mark(seconds=3.0, records=35)]
    """
    steps: list[tuple[float, int]] = []
    for marks in subtasks:
        before = 0
        for mark in marks:
            steps.append((mark.seconds, mark.records - before))
            before = mark.records
    done = 0
    result = []
    for seconds, more in sorted(steps):
        done += more
        result.append(Mark(seconds, done))
    return result


def report(engine: str, keys: int, timed: Steady, counted: int, expected: int, settings: dict[str, Any]) -> None:
    """Print a run's JSON line, or fail if the engine's final counts do not add up to the records it was given."""
    if counted != expected:
        raise SystemExit(f"{engine}: the final counts add up to {counted}, not to the {expected} records of the input.")
    if timed.seconds < LEAST_SECONDS:
        raise SystemExit(f"{engine}: {timed.seconds:.3f} s are too short to say anything; give it more records.")
    line = {
        "engine": engine,
        "keys": keys,
        "records": timed.records,
        "seconds": timed.seconds,
        "records_per_second": timed.records_per_second,
        "settings": settings,
    }
    print(json.dumps(line), flush=True)
