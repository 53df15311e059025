"""What the design of state costs: one composite state or four, with and without a time to live, on both backends.

    python -m benchmarks.state_design                      # 200,000 records a row: some minutes
    python -m benchmarks.state_design --records 20000      # shows that it works

The functions run in this process, epoch by epoch, without Spark and without an exchange between processes: what differs
between two rows is their state. The figures are processor time, which a busy machine hardly changes, and bytes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.table import Table

from benchmarks.keyed_count.display import wide_console
from rekindle.common import Configuration, Time, Types, WatermarkStrategy
from rekindle.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import StateTtlConfig, ValueState, ValueStateDescriptor
from rekindle.testing import InProcessJob, ManualClock

BACKENDS = ("hashmap", "rocksdb")
KEYS = 10_000
EPOCHS = 20
#: Visitors come once and are not seen again; each makes so many clicks in a row.
CLICKS = 5
#: Of the run's time, how long a visitor is remembered.
REMEMBERED = 0.1
EPOCH_MS = 60_000


@dataclass(frozen=True, slots=True)
class Session:
    """What a shop remembers of a user."""

    begun_ms: int
    actions: int
    spent_cents: int
    last_page: str


class SessionTuple(NamedTuple):
    """The same as a named tuple, which is stored without the names of its fields."""

    begun_ms: int
    actions: int
    spent_cents: int
    last_page: str


class OneState(KeyedProcessFunction):
    """Keeps a session as one value."""

    def __init__(self, kind: type = Session) -> None:
        self._kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self._session: ValueState[Any] = runtime_context.get_state(ValueStateDescriptor("session", self._kind))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        held = self._session.value() or self._kind(value, 0, 0, "")
        spent = held.spent_cents + value % 100
        self._session.update(self._kind(held.begun_ms, held.actions + 1, spent, f"page {value % 1000}"))


class FourStates(KeyedProcessFunction):
    """Keeps the same in a state per field."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kinds = {"begun_ms": int, "actions": int, "spent_cents": int, "last_page": str}
        states = [runtime_context.get_state(ValueStateDescriptor(name, kind)) for name, kind in kinds.items()]
        self._begun, self._actions, self._spent, self._page = states

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        if self._begun.value() is None:
            self._begun.update(value)
        self._actions.update((self._actions.value() or 0) + 1)
        self._spent.update((self._spent.value() or 0) + value % 100)
        self._page.update(f"page {value % 1000}")


class Visits(OneState):
    """Keeps sessions of visitors, for a while or for ever."""

    def __init__(self, lives_ms: int | None) -> None:
        super().__init__()
        self._lives_ms = lives_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("session", Session)
        if self._lives_ms is not None:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(self._lives_ms)).build())
        self._session = runtime_context.get_state(descriptor)


@dataclass(frozen=True)
class Measured:
    """What one row cost."""

    microseconds: float
    increment_bytes: float
    state_bytes: int


def measured(function: KeyedProcessFunction, key_of: Callable[[int], int], records: int, backend: str) -> Measured:
    """Run the function over the numbers, with a checkpoint after each epoch, and a savepoint at the end."""
    stream, clock = _stream(function, key_of, records, backend), ManualClock()
    job = InProcessJob.of(stream, clock, max_records=records // EPOCHS)
    seconds, increments = [], []
    for _ in range(EPOCHS):
        clock.advance(EPOCH_MS)
        began = time.process_time()
        job.epoch()
        seconds.append(time.process_time() - began)
        increments.append(job.checkpoint().manifest.new_bytes())
    state_bytes = job.checkpoint(savepoint=True).manifest.full_bytes()
    job.kill()
    settled = EPOCHS // 4  # the first epochs meet every key for the first time
    each = statistics.median(seconds[settled:]) / (records // EPOCHS) * 1e6
    return Measured(each, statistics.median(increments[settled:]), state_bytes)


def _stream(function: KeyedProcessFunction, key_of: Callable[[int], int], records: int, backend: str) -> DataStream:
    settings = {"state.backend.type": backend, "taskmanager.memory.managed.size": "64mb"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(1).enable_checkpointing(1000)
    numbers = DataGeneratorSource(lambda number: number, 2 * records + 1)
    source = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    return source.key_by(key_of, Types.LONG()).process(function, Types.LONG()).uid("sessions")


def rows(records: int) -> Iterator[tuple[str, str, Measured]]:
    """(question, row, figures) of every case."""
    user, visitor = (lambda number: number * 7919 % KEYS), (lambda number: number // CLICKS)
    lives_ms = round(EPOCHS * EPOCH_MS * REMEMBERED)
    for backend in BACKENDS:
        cases: dict[tuple[str, str], tuple[Any, Callable[[int], int]]] = {
            ("composite", "one state, a dataclass"): (OneState(), user),
            ("composite", "one state, a named tuple"): (OneState(SessionTuple), user),
            ("composite", "four states"): (FourStates(), user),
            ("time to live", "kept for ever"): (Visits(None), visitor),
            ("time to live", "with a time to live"): (Visits(lives_ms), visitor),
        }
        for (question, case), (function, key_of) in cases.items():
            yield question, f"{case}, {backend}", measured(function, key_of, records, backend)


def main() -> None:
    """Measure, and print one table for each question."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.state_design", description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=200_000, help="of each row (default: %(default)s)")
    records = parser.parse_args().records
    tables: dict[str, Table] = {}
    for question, case, found in rows(records):
        table = tables.setdefault(question, _new_table(question))
        cells = f"{found.microseconds:.2f}", f"{found.increment_bytes / 1024:,.0f}", f"{found.state_bytes / 1024:,.0f}"
        table.add_row(case, *cells)
    console = wide_console()
    for table in tables.values():
        console.print(table)


def _new_table(title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("state", "processor µs per record", "KiB per checkpoint", "KiB of state at the end"):
        table.add_column(heading, justify="right" if table.columns else "left")
    return table


if __name__ == "__main__":
    main()
