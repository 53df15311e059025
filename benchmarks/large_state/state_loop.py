"""The state loop alone: one backend in this process, driven as an operator drives it, without Spark.

    python -m benchmarks.large_state.state_loop --backend rocksdb --keys 5000000 --access zipf

It restores the keys from parts, reads and updates the state of one key per record, takes a delta from time to time, and
prints one line of JSON. Times are processor time of all threads of this process, RocksDB's compaction included.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import process_time, thread_time
from typing import Any

import msgspec
import psutil

from benchmarks.large_state.accesses import Access, key_text, numbers
from rekindle.common import Types
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.graph.settings import StateBackendSettings
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.keyed_backends import KeyedBackends, KeyedOperatorShape
from rekindle.runtime.state.keyed_state_format import CapturedColumn, CapturedState, encode_group
from rekindle.runtime.state.spec import value_spec
from rekindle.serde import value_codec_for

GROUPS = 128
CHUNK_RECORDS = 4000
PAIR = Types.TUPLE([Types.LONG(), Types.STRING()])
DESCRIPTOR = ValueStateDescriptor("profile", PAIR)
KEY_CODEC = value_codec_for(Types.STRING())


@dataclass(frozen=True)
class Loop:
    """What one process measures."""

    backend: str
    keys: int
    access: Access
    budget_mb: int
    value_bytes: int
    records: int
    warm_records: int
    deltas: int


@dataclass
class Measured:
    """What it found; times in µs of processor time."""

    restore_us_per_key: float
    record_us: float
    thread_us: float
    delta_us_per_record: float
    delta_bytes: int
    changed_bytes: int
    rss_mb: float
    idle_mb: float
    peak_mb: float


def value_of(number: int, count: int, size: int) -> tuple[int, str]:
    """A value of about `size` encoded bytes."""
    return count, f"{number}/{count}".ljust(size - 4, ".")


def parts(keys: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Every key with its first value, as full parts, a few key groups at a time so that little is in memory."""
    spec = value_spec(DESCRIPTOR, False)
    by_group: dict[int, list[int]] = {group: [] for group in range(GROUPS)}
    for number in range(keys):
        by_group[key_group(key_text(number), GROUPS)].append(number)
    for group, found in by_group.items():
        values = CapturedColumn([value_of(number, 1, size) for number in found], spec.values)
        state = CapturedState(spec, [key_text(number) for number in found], values)
        yield group, encode_group([state.encode(KEY_CODEC)])
        found.clear()


def saved_parts(folder: Path, keys: int, size: int) -> Path:
    """A file with the parts; made once, outside of the measurement."""
    path = folder / f"parts-{keys}-{size}"
    if not path.exists():
        with path.with_suffix(".new").open("wb") as file:
            for group, data in parts(keys, size):
                file.write(msgspec.msgpack.encode((group, len(data))).ljust(16, b"\x00"))
                file.write(data)
        path.with_suffix(".new").rename(path)
    return path


def read_parts(path: Path) -> Iterator[tuple[int, bytes]]:
    """The parts of a file, one at a time."""
    with path.open("rb") as file:
        while header := file.read(16):
            group, length = msgspec.msgpack.decode(header.rstrip(b"\x00"))
            yield group, file.read(length)


def created(loop: Loop, folder: str) -> tuple[KeyedBackends, KeyedStateBackend]:
    settings = StateBackendSettings(loop.backend, loop.budget_mb << 20)
    backends = KeyedBackends(settings, folder)
    shape = KeyedOperatorShape(GROUPS, range(GROUPS), KEY_CODEC)
    return backends, backends.create(shape, KeyedStateOptions(defer_reads=True))


def processed(keyed: KeyedStateBackend, state: Any, records: list[str]) -> None:
    """One batch, as `run_keyed` and a function that updates a value do it."""
    if keyed.prefetch is not None:
        keyed.prefetch(dict.fromkeys(records))
    find, load = keyed.front.get, keyed.load_row
    value_of_state, update = state.value, state.update
    for key in records:
        keyed.row = find(key) or load(key)
        held = value_of_state()
        update((held[0] + 1, held[1]))


def records_of(loop: Loop, seed: int) -> Iterator[list[str]]:
    """Batches of records; made outside of the measured time."""
    drawn = map(key_text, numbers(loop.access, loop.keys, seed))
    while True:
        yield list(islice(drawn, CHUNK_RECORDS))


@dataclass
class Clocks:
    """Processor time of this process and of this thread, summed over the measured blocks."""

    process_s: float = 0.0
    thread_s: float = 0.0

    def of(self, work: Callable[[], Any]) -> Any:
        process, thread = process_time(), thread_time()
        result = work()
        self.process_s += process_time() - process
        self.thread_s += thread_time() - thread
        return result


def ran(keyed: KeyedStateBackend, state: Any, batches: Iterator[list[str]], records: int, clocks: Clocks) -> set[str]:
    """Process so many records; returns their keys."""
    seen: set[str] = set()
    for batch in islice(batches, records // CHUNK_RECORDS):
        clocks.of(lambda batch=batch: processed(keyed, state, batch))
        seen.update(batch)
    return seen


def measured(loop: Loop, path: Path) -> Measured:
    """Restore, run, take deltas."""
    gc.freeze()
    process = psutil.Process()
    idle_mb = process.memory_info().rss / 1e6
    with tempfile.TemporaryDirectory(prefix="rekindle-loop-") as folder:
        backends, keyed = created(loop, folder)
        restoring, running, cutting = Clocks(), Clocks(), Clocks()
        restoring.of(lambda: keyed.restore(read_parts(path)))
        state = restoring.of(lambda: keyed.value_state(DESCRIPTOR))
        batches = records_of(loop, 1)
        ran(keyed, state, batches, loop.warm_records, Clocks())
        keyed.snapshot_delta(1, None)
        keyed.snapshot_completed(1)
        delta_bytes = changed = 0
        resident = []
        for number in range(loop.deltas):
            seen = ran(keyed, state, batches, loop.records // loop.deltas, running)
            delta = cutting.of(lambda number=number: keyed.snapshot_delta(number + 2, number + 1))
            delta_bytes += cutting.of(lambda delta=delta: sum(len(data) for _, data in delta.encode()))
            keyed.snapshot_completed(number + 2)
            changed += sum(map(len, seen)) + len(seen) * (loop.value_bytes + 1)
            resident.append(process.memory_info().rss / 1e6)
        backends.close()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return Measured(
        restore_us_per_key=restoring.process_s / loop.keys * 1e6,
        record_us=running.process_s / loop.records * 1e6,
        thread_us=running.thread_s / loop.records * 1e6,
        delta_us_per_record=cutting.process_s / loop.records * 1e6,
        delta_bytes=delta_bytes,
        changed_bytes=changed,
        rss_mb=statistics.median(resident),
        idle_mb=idle_mb,
        peak_mb=peak_mb,
    )


def main() -> None:
    """Measure one loop and print it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_state.state_loop")
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="rocksdb")
    parser.add_argument("--keys", type=int, default=500_000)
    parser.add_argument("--access", type=Access, choices=list(Access), default=Access.ZIPF)
    parser.add_argument("--budget-mb", type=int, default=64)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--warm-records", type=int, default=400_000)
    parser.add_argument("--deltas", type=int, default=4)
    parser.add_argument("--parts", type=Path, required=True, help="folder for the saved keys, shared by runs")
    parser.add_argument("--only-parts", action="store_true", help="save the keys, measure nothing")
    chosen = vars(parser.parse_args())
    folder, only_parts = chosen.pop("parts"), chosen.pop("only_parts")
    loop = Loop(**chosen)
    path = saved_parts(folder, loop.keys, loop.value_bytes)
    if not only_parts:
        json.dump({**asdict(loop), **asdict(measured(loop, path))}, sys.stdout)
        print()


if __name__ == "__main__":
    main()
