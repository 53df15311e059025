"""The records that every engine reads, how they are decoded, and the client's settings: the same for everyone.

Needs nothing but msgspec: each peer imports this module in an environment of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.keyed_count.workload import LEAST_SECONDS, WARM_UP_SHARE, Mark, key_number, merged

PARTITIONS = 4
KEYS = 1_000
RECORD_BYTES = 100
DECODERS = ("msgspec", "json")
#: librdkafka waits a second before it fetches again when its queue was full; the queue is the one that Rekindle has.
CLIENT_SETTINGS = {"fetch.queue.backoff.ms": 10, "queued.max.messages.kbytes": 16_384}
#: What a loop over a consumer asks for at once: more is not faster.
FETCH_RECORDS = 4096


def value_of(index: int) -> bytes:
    """Return the value of record `index`.

    >>> value_of(7)[:40], len(value_of(7))
    (b'{"key":"k356","amount":1,"number":7,"tex', 100)
    """
    head = f'{{"key":"k{key_number(index, KEYS)}","amount":1,"number":{index},"text":"'
    return (head + "x" * (RECORD_BYTES - len(head) - 2) + '"}').encode()


def pairs_decoder(name: str) -> Callable[[Iterable[Any]], list[tuple[str, int]]]:
    """Return the function from the values of records to pairs (key, amount)."""
    decode = record_decoder(name)
    if name == "json":
        return lambda values: [(record["key"], record["amount"]) for record in map(decode, values)]
    return lambda values: [(record.key, record.amount) for record in map(decode, values)]


def record_decoder(name: str) -> Callable[[Any], Any]:
    """Return the decoder: to a dict with `json`, to an object with two fields with `msgspec`."""
    if name == "json":
        return json.loads
    import msgspec

    record = msgspec.defstruct("Record", [("key", str), ("amount", int)], frozen=True, gc=False)
    return msgspec.json.Decoder(record).decode


def report(
    engine: str, progress: Sequence[Sequence[Mark]], counted: int, expected: int, settings: dict[str, Any]
) -> None:
    """Print a run's JSON line from the progress of its subtasks (seconds of `time.time()`), or fail.

    It fails if the engine's final counts do not add up to the records of the topic.
    """
    if counted != expected:
        raise SystemExit(f"{engine}: the final counts add up to {counted}, not to the {expected} records of the topic.")
    marks = merged(progress)
    begin = next(mark for mark in marks if mark.records >= marks[-1].records * WARM_UP_SHARE)
    seconds, records = marks[-1].seconds - begin.seconds, marks[-1].records - begin.records
    if seconds < LEAST_SECONDS:
        raise SystemExit(f"{engine}: {seconds:.3f} s are too short to say anything; give it more records.")
    line = {"engine": engine, "keys": KEYS, "records": records, "seconds": seconds, "began": begin.seconds}
    print(json.dumps(line | {"records_per_second": records / seconds, "settings": settings}), flush=True)


class Progress:
    """Notes how many records were processed, and when, not more often than every `step` records."""

    def __init__(self, step: int = 5_000) -> None:
        self.done = 0
        self.marks: list[Mark] = []
        self._step = step
        self._next = step

    def add(self, records: int) -> None:
        """Note that so many more records are processed."""
        self.done += records
        if self.done >= self._next:
            self._next = self.done + self._step
            self.note()

    def end(self) -> None:
        """Note the time of the last record, unless that was done."""
        if not self.marks or self.marks[-1].records < self.done:
            self.note()

    def note(self) -> None:
        """Note the time now."""
        self.marks.append(Mark(time.time(), self.done))
