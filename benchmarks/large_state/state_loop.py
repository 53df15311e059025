"""The state loop alone: one backend in this process, driven as an operator drives it, without Spark.

    python -m benchmarks.large_state.state_loop --backends hashmap rocksdb --keys 5000000 --access zipf

It restores the keys from parts, reads and updates the state of one key per record, takes a delta from time to time, and
prints one line of JSON. Two backends take turns, batch by batch, so that other work disturbs both alike. Times
are processor time of all threads of this process, RocksDB's compaction included.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
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
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.keyed_backends import KeyedBackends, KeyedOperatorShape
from rekindle.runtime.state.keyed_state_format import CapturedColumn, CapturedState, encode_group
from rekindle.runtime.state.spec import value_spec
from rekindle.serde import value_codec_for

GROUPS = 128
#: As in a slot.
GC_THRESHOLDS = (50_000, 20, 10)
CHUNK_RECORDS = 4000
PAIR = Types.TUPLE([Types.LONG(), Types.STRING()])
DESCRIPTOR = ValueStateDescriptor("profile", PAIR)
KEY_CODEC = value_codec_for(Types.STRING())


@dataclass(frozen=True)
class Loop:
    """What one process measures."""

    backends: list[str]
    keys: int
    access: Access
    budget_mb: int
    value_bytes: int
    records: int
    warm_records: int
    deltas: int


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


def created(loop: Loop, backend: str, folder: str) -> tuple[KeyedBackends, KeyedStateBackend]:
    settings = StateBackendSettings(backend, loop.budget_mb << 20)
    backends = KeyedBackends(settings, folder)
    shape = KeyedOperatorShape(GROUPS, range(GROUPS), KEY_CODEC)
    return backends, backends.create(shape, KeyedStateOptions(defer_reads=True))


def processed(keyed: KeyedStateBackend, state: Any, records: list[str]) -> None:
    """One batch, as `run_keyed` and a function that updates a value do it."""
    if not keyed.in_memory:
        keyed.prefetch(dict.fromkeys(records))
    find, load = keyed.front.get, keyed.load_row
    value_of_state, update = state.value, state.update
    for key in records:
        keyed.row = find(key) or load(key)
        held = value_of_state()
        update((held[0] + 1, held[1]))


def batches_of(loop: Loop, seed: int) -> Iterator[tuple[list[int], list[str]]]:
    """Batches of key numbers and keys; made outside of the measured time."""
    drawn = numbers(loop.access, loop.keys, seed)
    while True:
        some = list(islice(drawn, CHUNK_RECORDS))
        yield some, list(map(key_text, some))


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


class Side:
    """One backend under measurement."""

    def __init__(self, loop: Loop, backend: str, folder: str) -> None:
        self._backends, self.keyed = created(loop, backend, folder)
        self.restoring, self.running, self.cutting = Clocks(), Clocks(), Clocks()
        self.delta_bytes = 0
        self._snapshots = 0
        self.close = self._backends.close

    def restore(self, path: Path) -> None:
        """Load every key."""
        self.restoring.of(lambda: self.keyed.restore(read_parts(path)))
        self._state = self.restoring.of(lambda: keyed_state(self.keyed, DESCRIPTOR))

    def run(self, records: list[str]) -> None:
        """Process a batch."""
        self.running.of(lambda: processed(self.keyed, self._state, records))

    def cut(self) -> None:
        """Take a delta, encode it, and call it complete."""
        last = self._snapshots
        self._snapshots += 1
        delta = self.cutting.of(lambda: self.keyed.snapshot_delta(self._snapshots, last or None))
        self.delta_bytes += self.cutting.of(lambda: sum(len(data) for _, data in delta.encode()))
        self.keyed.snapshot_completed(self._snapshots)

    def begin(self) -> None:
        """End the warm-up: what was measured so far does not count."""
        self.cut()
        self.running, self.cutting, self.delta_bytes = Clocks(), Clocks(), 0

    def figures(self, loop: Loop) -> dict[str, float]:
        """The figures, in µs of processor time."""
        return {
            "restore_us_per_key": self.restoring.process_s / loop.keys * 1e6,
            "record_us": self.running.process_s / loop.records * 1e6,
            "thread_us": self.running.thread_s / loop.records * 1e6,
            "delta_us_per_record": self.cutting.process_s / loop.records * 1e6,
            "delta_bytes": self.delta_bytes,
        }


def measured(loop: Loop, path: Path) -> dict[str, Any]:
    """Restore, run, take deltas; with two backends they take turns, batch by batch."""
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
    process, touched = psutil.Process(), bytearray(loop.keys)
    with tempfile.TemporaryDirectory(prefix="rekindle-loop-") as folder:
        sides = {backend: Side(loop, backend, folder) for backend in loop.backends}
        idle_mb = process.memory_info().rss / 1e6
        for side in sides.values():
            side.restore(path)
        batches = batches_of(loop, 1)
        _run(sides, batches, loop.warm_records, touched)
        for side in sides.values():
            side.begin()
        changed, resident = 0, []
        for _ in range(loop.deltas):
            touched[:] = bytes(loop.keys)
            _run(sides, batches, loop.records // loop.deltas, touched)
            for side in sides.values():
                side.cut()
            changed += touched.count(1)
            resident.append(process.memory_info().rss / 1e6)
        found = {backend: side.figures(loop) for backend, side in sides.items()}
        for side in sides.values():
            side.close()
    entry_bytes = len(KEY_CODEC.encode(key_text(0))) + loop.value_bytes + 1
    memory = {"rss_mb": statistics.median(resident), "idle_mb": idle_mb, "changed_bytes": changed * entry_bytes}
    return {**asdict(loop), **found, **memory}


def _run(sides: dict[str, Side], batches: Any, records: int, touched: bytearray) -> None:
    for drawn, keys in islice(batches, records // CHUNK_RECORDS):
        for side in sides.values():
            side.run(keys)
        for number in drawn:
            touched[number] = 1


def main() -> None:
    """Measure one loop and print it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_state.state_loop")
    parser.add_argument("--backends", nargs="+", choices=["hashmap", "rocksdb"], default=["rocksdb"])
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
        print(json.dumps(measured(loop, path)))


if __name__ == "__main__":
    main()
