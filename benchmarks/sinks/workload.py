"""The rows that every contender writes, and how a run reports itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

BATCH = 5000
#: The environment variable with the password of the database.
PASSWORD = "REKINDLE_BENCHMARK_PASSWORD"
Values = tuple[int, str, float, int]


@dataclass(frozen=True)
class Run:
    """What one run wrote, and how long that took."""

    contender: str
    records: int
    seconds: float

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds

    def line(self) -> str:
        return json.dumps(asdict(self))


def row_of(number: int, keys: int) -> Values:
    """The row with this number: the first `keys` rows insert, the others update.

    >>> row_of(7, 5)
    (2, 'customer 2', 3.5, 7)
    """
    key = number % keys
    return (key, f"customer {key}", number / 2, number)


def batches(records: int, keys: int) -> Iterator[list[Values]]:
    """All rows in batches."""
    for begin in range(0, records, BATCH):
        yield [row_of(number, keys) for number in range(begin, min(begin + BATCH, records))]


def expected(records: int, keys: int) -> tuple[int, int]:
    """The number of rows at the end, and the sum of their last column.

    >>> expected(7, 5)
    (5, 20)
    """
    return min(records, keys), sum(range(max(0, records - keys), records))
