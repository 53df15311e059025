"""Reads the job's output and compares it with the model's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from examples.orders.ends import STREAMS
from examples.orders.model import Row

#: The streams that each branch writes.
BRANCH_STREAMS = {
    "deduplication": ("dropped",),
    "tracking": ("statuses", "rejected"),
    "purchases": ("purchases", "late-purchases"),
    "stock": ("stock", "low-stock", "back-orders"),
    "batches": ("batches",),
}
_encode = msgspec.json.Encoder(order="sorted").encode


def visible_files(directory: Path) -> list[Path]:
    """The files that a reader sees: files in progress are hidden."""
    return sorted(path for path in directory.glob("*") if path.is_file() and not path.name.startswith("."))


def rows_of(directory: Path) -> Iterator[Any]:
    """Every row of every visible file."""
    for path in visible_files(directory):
        yield from msgspec.json.Decoder().decode_lines(path.read_bytes())


@dataclass(frozen=True)
class Verdict:
    """The comparison of one stream with the model's."""

    stream: str
    rows: int
    expected: int
    missing: int
    unexpected: int
    #: An error beside missing and unexpected rows, such as a wrong batch size.
    complaint: str = ""

    @property
    def equal(self) -> bool:
        """Whether no row is missing or unexpected, and there is no other error."""
        return not (self.missing or self.unexpected or self.complaint)

    def __str__(self) -> str:
        if self.equal:
            return f"{self.stream}: {self.rows:,} rows, equal"
        found = f"{self.stream}: {self.rows:,} rows, {self.missing:,} missing, {self.unexpected:,} not expected"
        return f"{found}; {self.complaint}" if self.complaint else found


def compare(output: Path, expected: Mapping[str, Iterable[Row]], batch_size: int, partial: int) -> list[Verdict]:
    """Compare the files below `output` with the model's rows."""
    return compare_rows(lambda stream: rows_of(output / stream), expected, batch_size, partial)


def compare_rows(
    rows_of_stream: Callable[[str], Iterable[Any]],
    expected: Mapping[str, Iterable[Row]],
    batch_size: int,
    partial: int,
) -> list[Verdict]:
    """Compare each stream as a multiset of rows; at most `partial` batches may be smaller than the others."""
    verdicts = []
    for stream in STREAMS:
        rows = list(rows_of_stream(stream))
        complaint = ""
        if stream == "batches":
            complaint = _batch_complaint([len(batch["events"]) for batch in rows], batch_size, partial)
            rows = [event for batch in rows for event in batch["events"]]
        found, wanted = Counter(map(_encode, rows)), Counter(map(_encode, expected[stream]))
        missing, unexpected = (wanted - found).total(), (found - wanted).total()
        verdicts.append(Verdict(stream, found.total(), wanted.total(), missing, unexpected, complaint))
    return verdicts


def _batch_complaint(sizes: list[int], batch_size: int, partial: int) -> str:
    smaller = [size for size in sizes if size < batch_size]
    if any(not 0 < size <= batch_size for size in sizes):
        return f"batches of {min(sizes)} to {max(sizes)} events"
    return f"{len(smaller)} batches are smaller than {batch_size}" if len(smaller) > partial else ""
