"""Random histories of an HBase sink: attempts that die and replay from a checkpoint, calls that arrive late or twice.

The sink's own code decides what is sent; a history decides when it arrives. `HBaseModel` has HBase's rules for cells,
as seen on a real server.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rekindle.datastream.connectors.hbase import Delete, Mutation, Put
from rekindle.datastream.connectors.hbase.cell_timestamps import base_of
from rekindle.datastream.connectors.hbase.flush_calls import FlushCalls
from rekindle.datastream.connectors.hbase.mutations import family_of
from rekindle.datastream.connectors.hbase.row_buffer import RowBuffer
from rekindle.datastream.connectors.hbase.sink_settings import HBaseSinkSettings
from rekindle.datastream.connectors.hbase.thrift_settings import ThriftSettings

TABLE, FAMILIES = "t", (b"f", b"g")
COLUMNS = [b"f:a", b"f:", b"g:a"]
Rows = dict[bytes, dict[bytes, bytes]]
#: A batch of mutations with one timestamp, which HBase carries out or not: it can be applied again at any time.
Call = Callable[[Any], None]


class HBaseModel:
    """HBase's cells: the highest timestamp counts, of equal ones the last arrival; a delete hides all up to its own."""

    def __init__(self) -> None:
        self._cells: dict[tuple[bytes, bytes], dict[int, bytes]] = {}
        self._deleted: dict[tuple[bytes, bytes], int] = {}  # of a column, or of a family as b"f"

    def table(self, name: str) -> HBaseModel:
        return self

    def families(self) -> dict[bytes, Any]:
        return dict.fromkeys(FAMILIES)

    def batch(self, timestamp: int | None, wal: bool = True) -> _ModelBatch:
        assert timestamp is not None
        return _ModelBatch(self, timestamp)

    def put(self, row: bytes, columns: dict[bytes, bytes], timestamp: int) -> None:
        for column, value in columns.items():
            self._cells.setdefault((row, column), {})[timestamp] = value

    def delete(self, row: bytes, columns: list[bytes] | None, timestamp: int) -> None:
        for column in FAMILIES if columns is None else columns:
            place = (row, column)
            self._deleted[place] = max(timestamp, self._deleted.get(place, timestamp))

    def rows(self) -> Rows:
        seen: Rows = {}
        for (row, column), versions in self._cells.items():
            newest = max(versions)
            hidden = max(self._deleted.get((row, place), -1) for place in (column, family_of(column)))
            if newest > hidden:
                seen.setdefault(row, {})[column] = versions[newest]
        return seen


class _ModelBatch:
    def __init__(self, model: HBaseModel, timestamp: int) -> None:
        self._model, self._timestamp = model, timestamp
        self._calls: list[Callable[[], None]] = []

    def put(self, row: bytes, columns: dict[bytes, bytes]) -> None:
        self._calls.append(lambda: self._model.put(row, columns, self._timestamp))

    def delete(self, row: bytes, columns: list[bytes] | None) -> None:
        self._calls.append(lambda: self._model.delete(row, columns, self._timestamp))

    def send(self) -> None:
        for call in self._calls:
            call()


def expected_rows(mutations: list[Mutation]) -> Rows:
    """What a reader sees after the mutations, each applied once and in order."""
    rows: Rows = {}
    for mutation in mutations:
        if isinstance(mutation, Put):
            rows.setdefault(mutation.row, {}).update(mutation.columns)
        elif mutation.columns is None:
            rows.pop(mutation.row, None)
        else:
            for deleted in mutation.columns:
                kept = rows.get(mutation.row, {})
                for column in [each for each in kept if deleted in (each, family_of(each))]:
                    del kept[column]
    return {row: columns for row, columns in rows.items() if columns}


def random_mutations(chance: random.Random, prefix: bytes = b"") -> list[Mutation]:
    """Puts and deletes of few rows, so that they meet often."""
    return [_mutation(chance, prefix, number) for number in range(chance.randint(1, 25))]


def _mutation(chance: random.Random, prefix: bytes, number: int) -> Mutation:
    row = prefix + chance.choice([b"1", b"2"])
    columns = chance.sample(COLUMNS, chance.randint(1, 3))
    match chance.randrange(6):
        case 0:
            return Delete(row)
        case 1:
            return Delete(row, columns)
        case 2:
            return Delete(row, [chance.choice([*FAMILIES, b"f:"])])
        case _:
            return Put(row, dict.fromkeys(columns, b"%d" % number))


@dataclass
class _Arrivals:
    """Stands for `ThriftCalls`: applies calls at once, and keeps them so that they can come again, late."""

    connection: Any
    chance: random.Random
    made: list[Call] = field(default_factory=list)
    #: Whether the process is dead: then its calls only arrive late.
    dead: bool = False

    def call(self, work: Call, doing: str, table: str) -> None:
        if not self.dead:
            work(self.connection)
        self.made.append(work)
        self.some_arrive_late()

    def some_arrive_late(self, most: int = 2) -> None:
        for work in self.chance.sample(self.made, min(len(self.made), self.chance.randint(0, most))):
            work(self.connection)


def play(
    mutations: list[Mutation], connection: Any, chance: random.Random, first_claim_ms: int, attempts: int = 3
) -> None:
    """Write the mutations in several attempts; each but the last dies somewhere, and the next one replays.

    An attempt goes on from some checkpoint: everything before that was confirmed.
    """
    settings = HBaseSinkSettings(ThriftSettings((("model", 1),)), TABLE, None)
    arrivals = _Arrivals(connection, chance)
    checkpoints, claimed_ms = [0], first_claim_ms
    for attempt in range(attempts):
        is_last = attempt == attempts - 1
        arrivals.dead = False
        flush = FlushCalls(settings, arrivals, base_of(claimed_ms))  # type: ignore[arg-type]
        claimed_ms += chance.choice([1, 1, 1000])
        begin = chance.choice(checkpoints)
        end = len(mutations) if is_last else chance.randint(begin, len(mutations))
        checkpoints = [each for each in checkpoints if each <= begin]
        buffer = RowBuffer()
        for position in range(begin, end):
            buffer.add(mutations[position], TABLE, None)
            if chance.random() < 0.3:
                flush.send(buffer)
                buffer = RowBuffer()
                if chance.random() < 0.5:
                    checkpoints.append(position + 1)
        arrivals.dead = not is_last and chance.random() < 0.5
        flush.send(buffer)
    arrivals.some_arrive_late(len(arrivals.made))
