"""Local recovery: what the copies cost while a checkpoint is written, and what they save at a restore.

    python -m benchmarks.local_recovery                     # 512 MB of state files, a directory as the store
    python -m benchmarks.local_recovery --megabytes 64

State files of 64 MB are written to a store with and without local copies, then read back as a restore reads them, from
the store and from the copies (which are compared with their checksums first). The store is a directory on the same
disk, synced as always: a store behind a network is slower, the copies are not. Also printed: the time in which a
network of 1 Gbit/s brings as many bytes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rekindle.checkpoint.store.copied_store import CopiedStore
from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.port import Store

MB = 1 << 20
BLOCK = 8 * MB
FILE_MB = 64
NETWORK_BYTES_PER_S = 125e6


def _path(number: int) -> str:
    return f"orders/t/shared/{number}-1-count-0.state"


def _write(store: Store, files: int, content: bytes) -> None:
    for number in range(files):
        store.put(_path(number), _blocks(content))


def _blocks(content: bytes) -> Iterator[bytes]:
    for _ in range(FILE_MB * MB // BLOCK):
        yield content


def _read(store: Store, files: int) -> None:
    for number in range(files):
        for offset in range(0, FILE_MB * MB, BLOCK):
            assert len(store.read(_path(number), offset, BLOCK)) == BLOCK


def _seconds(call: Callable[[], None]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


def main() -> None:
    """Measure and print the four times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=512)
    files = max(1, parser.parse_args().megabytes // FILE_MB)
    content = os.urandom(BLOCK)
    with tempfile.TemporaryDirectory(prefix="local-recovery-") as directory:
        store, copies = LocalStore(Path(directory, "store")), Path(directory, "copies")
        copies.mkdir()
        plain_s = _seconds(lambda: _write(store, files, content))
        copied_s = _seconds(lambda: _write(CopiedStore(store, copies), files, content))
        store_s = _seconds(lambda: _read(store, files))
        reading = CopiedStore(store, copies)
        copies_s = _seconds(lambda: _read(reading, files))
        assert not reading.from_store
    print(f"{files * FILE_MB} MB in {files} files, seconds:")
    print(f"  write to the store                    {plain_s:8.2f}")
    print(f"  write to the store and local copies   {copied_s:8.2f}")
    print(f"  read from the store                   {store_s:8.2f}")
    print(f"  read from local copies, verified      {copies_s:8.2f}")
    print(f"  over a network of 1 Gbit/s            {files * FILE_MB * MB / NETWORK_BYTES_PER_S:8.2f}")


if __name__ == "__main__":
    main()
