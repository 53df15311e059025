"""A probe that tells new records from repeated ones: a sink that writes each record with its time, and its reader."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from examples.orders.records import OrderStatus
from rekindle.datastream.connectors.sink_api import Sink, SinkWriter, WriterInitContext


class OrderedFailureError(RuntimeError):
    """Raised in user code by order of the benchmark."""


class Seen(NamedTuple):
    """A record that reached the sink."""

    at: float
    process: int
    record: str


class ProbeSink(Sink[OrderStatus]):
    """Appends a line per record, in one write, to a file of its process. Raises once when `folder/fail` appears."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_writer(self, context: WriterInitContext) -> SinkWriter[OrderStatus]:
        return _Writer(self._folder, context.subtask)


class _Writer(SinkWriter[OrderStatus]):
    def __init__(self, folder: Path, subtask: int) -> None:
        self._fail, self._failed = folder / "fail", folder / "failed"
        path = folder / f"{os.getpid()}-{subtask}.seen"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, element: OrderStatus, context: SinkWriter.Context) -> None:
        os.write(self._descriptor, f"{time.time():.6f} {element.order_id} {element.status.value}\n".encode())
        if self._fail.exists():
            self._raise()

    def _raise(self) -> None:
        try:
            self._fail.rename(self._failed)  # only one subtask can
        except FileNotFoundError:
            return
        self._failed.write_text(f"{time.time():.6f}\n")
        raise OrderedFailureError("A function fails, as the benchmark asked.")

    def flush(self, end_of_input: bool) -> None:
        """Do nothing: each record is written at once."""

    def close(self) -> None:
        os.close(self._descriptor)


class Observed:
    """Follows the files of a probe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}
        self._known: set[str] = set()
        self._old: set[int] = set()

    def mark(self) -> None:
        """Mark the fault: records written by processes that exist now, also later, are not new."""
        for seen in self._read():
            self._known.add(seen.record)
            self._old.add(seen.process)

    def new_records(self) -> list[Seen]:
        """Records that processes started after the mark have written and no earlier process; each only once."""
        seen = sorted(self._read(), key=lambda each: each.process not in self._old)
        found = []
        for each in seen:
            if each.process in self._old:
                self._known.add(each.record)
            elif each.record not in self._known:
                found.append(each)
        self._known.update(each.record for each in found)
        return found

    def _read(self) -> Iterator[Seen]:
        for path in sorted(self._folder.glob("*.seen")):
            process = int(path.name.partition("-")[0])
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._offsets[path] = self._offsets.get(path, 0) + len(whole)
            for line in whole.decode().splitlines():
                at, _, record = line.partition(" ")
                yield Seen(float(at), process, record)
