"""A ledger of a function's emitted rows, in a file mapped into memory, which survives any end of its process.

Plain Python without dependencies. PyFlink's workers may be killed at the end of a job before their functions close;
numbers that were only in their memory would be lost.
"""

from __future__ import annotations

import mmap
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

from benchmarks.keyed_count.workload import Mark, merged
from benchmarks.orders.workload import DIGESTS, Tallies, added

RECORDS_PER_MARK = 500
_PLACE = {stream: 2 * number for number, stream in enumerate(DIGESTS)}
_TIMES = 2 * len(DIGESTS)
_SIZE = 8 * (_TIMES + 1)


class Ledger:
    """The rows and sums of one function, by stream, the time of its last work, and marks of its progress.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Ledger(folder).add("stock", 17)
    ...     tallies([read(path) for path in Path(folder).glob("*.ledger")])["stock"]
    (1, 17)
    """

    def __init__(self, directory: str) -> None:
        name = str(uuid.uuid4())
        path = Path(directory, f"{name}.ledger")
        path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), _SIZE))
        self._numbers = mapped[: 8 * _TIMES].cast("q")
        self._worked = mapped[8 * _TIMES :].cast("d")
        self._marks_path = Path(directory, f"{name}.marks")
        self._events = 0

    def add(self, stream: str, value: int) -> None:
        """Count a row of a stream."""
        place, numbers = _PLACE[stream], self._numbers
        numbers[place] += 1
        numbers[place + 1] += value
        self._worked[0] = time.time()

    def worked(self) -> None:
        """Record the time of work that emits nothing."""
        self._worked[0] = time.time()

    def mark(self) -> None:
        """Count an incoming event; every few events a mark with the time is written."""
        self._events += 1
        if self._events % RECORDS_PER_MARK == 0:
            with self._marks_path.open("a") as file:
                file.write(f"{time.time()} {self._events}\n")


def read(path: Path) -> tuple[Tallies, float]:
    """Return the content of a ledger, and the time of its function's last work."""
    content = memoryview(path.read_bytes())
    numbers, times = content[: 8 * _TIMES].cast("q"), content[8 * _TIMES :].cast("d")
    return {stream: (numbers[place], numbers[place + 1]) for stream, place in _PLACE.items()}, times[0]


def tallies(ledgers: Iterable[tuple[Tallies, float]]) -> Tallies:
    """Return the rows and sums of all functions together."""
    return added(found for found, _ in ledgers)


def progress(directory: str, events: int) -> list[Mark]:
    """Return the marks of all functions as one, with a final mark at the last work of the last function."""
    lines = [path.read_text().splitlines() for path in Path(directory).glob("*.marks")]
    marks = merged([Mark(float(line.split()[0]), int(line.split()[1])) for line in each] for each in lines)
    last = max(worked for _, worked in map(read, Path(directory).glob("*.ledger")))
    return [*marks, Mark(last, events)]
