"""Pathway: a Python stateful reducer (``stateful_many``, ``stateful_single``) or, for information, its built-in count.

Records come through Pathway's own CSV reader (Rust), far faster than a Python connector that passes single rows: files
of one batch each, written before the start and linked as often as needed. A reduction of all counts to one sum, inside
the engine, gives the number of counted records after each batch: for the clock's marks, and to check the result.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

import pathway as pw

from benchmarks.keyed_count.workload import BLOCK_RECORDS, Mark, block, report, steady

LEAST_BATCHES = 12


class Record(pw.Schema):
    key: str
    value: int


@pw.reducers.stateful_many
def count_many(state: int | None, rows: list[tuple[list[int], int]]) -> int:
    """One call for all records of a key in one batch; equal records arrive as one row with a count."""
    count = state or 0
    for (value,), times in rows:
        count += value * times
    return count


@pw.reducers.stateful_single
def count_single(state: int | None, value: int) -> int:
    """One call for each record."""
    return value if state is None else state + value


def write_input(directory: Path, keys: int, records: int, batch: int) -> int:
    """Write the block as CSV files of ``batch`` records, link them until there are enough; return how many records."""
    whole = block(keys)
    written = []
    for number, start in enumerate(range(0, BLOCK_RECORDS, batch)):
        path = directory / f"block-{number}"
        share = whole[start : start + batch]
        path.write_text("key,value\n" + "".join(f"{key},{value}\n" for key, value in share))
        written.append((path, len(share)))
    files = max(2, round(records / batch))
    inputs = directory / "input"
    inputs.mkdir()
    linked = 0
    for number in range(files):
        path, size = written[number % len(written)]
        os.link(path, inputs / f"{number:06}.csv")
        linked += size
    return linked


def counts_of(records: Any, reducer: str) -> Any:
    grouped = records.groupby(pw.this.key)
    if reducer == "count":
        return grouped.reduce(pw.this.key, count=pw.reducers.count())
    count = {"many": count_many, "single": count_single}[reducer](pw.this.value)
    return grouped.reduce(pw.this.key, count=pw.declare_type(int, count))


def run(inputs: Path, reducer: str) -> list[Mark]:
    """Run the job and return its progress after each batch."""
    records = pw.io.csv.read(inputs, schema=Record, mode="static")
    total = counts_of(records, reducer).reduce(total=pw.reducers.sum(pw.this.count))
    marks: list[Mark] = []

    def note(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            marks.append(Mark(monotonic(), row["total"]))

    pw.io.subscribe(total, on_change=note)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return marks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--reducer", choices=["many", "single", "count"], default="many")
    parser.add_argument("--batch", type=int, default=250_000)
    options = parser.parse_args()
    # Pathway delivers the results of neighbouring batches together: with few batches the marks would be useless.
    options.batch = min(options.batch, options.records // LEAST_BATCHES)
    with tempfile.TemporaryDirectory() as name:
        records = write_input(Path(name), options.keys, options.records, options.batch)
        marks = run(Path(name) / "input", options.reducer)
    reducers = {"many": "stateful_many", "single": "stateful_single", "count": "built-in count"}
    settings = {
        "reducer": reducers[options.reducer],
        "input": "CSV files, read in Rust",
        "batch": options.batch,
        "workers": "1, and the reader's thread",
        "persistence": "off",
    }
    report("pathway", options.keys, steady(marks), marks[-1].records, records, settings)


if __name__ == "__main__":
    main()
