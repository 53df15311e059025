"""The job: transfers become debits and credits, an exchange brings each to its account, keyed state holds the balance.

    transfers ── desk ──(key_by account)── ledger ── statements

Different subtasks, in different processes, book the debit and the credit of a transfer. A checkpoint that cut the
stream between the two would show a wrong total.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from examples.transfers.audit import AuditLog, Note
from examples.transfers.model import Balance, Entry, Transfer, TransferGenerator
from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    FlatMapFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ListState, ListStateDescriptor, ValueState, ValueStateDescriptor

JOB_NAME = "transfers"
_END_OF_TIME = 2**62


class _Audited(CheckpointedFunction):
    """Keeps this subtask's share of the books, and writes it as a note at each barrier.

    Keyed state cannot list all its keys, so each record updates the share. It is operator list state, one number per
    name: a restore with another parallelism redistributes the numbers, and a subtask adds up those that it gets. The
    shares then no longer match the accounts of the subtask; their sum is the same.
    """

    role: str
    shares: tuple[str, ...]

    def __init__(self, log: AuditLog, run: int) -> None:
        self.log = log
        self.run = run

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.parallelism = runtime_context.get_number_of_parallel_subtasks()
        self.attempt = runtime_context.get_attempt_number()

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self._kept: dict[str, ListState[int]] = {
            name: store.get_list_state(ListStateDescriptor(name, Types.LONG())) for name in self.shares
        }
        self.share = {name: sum(state.get()) for name, state in self._kept.items()}

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        for name, state in self._kept.items():
            state.update([self.share[name]])
        note = Note(self.role, self.subtask, self.parallelism, **self.share)
        self.log.note(context.get_checkpoint_id(), self.run, self.attempt, note)


class Desk(_Audited, FlatMapFunction):
    """Makes a debit and a credit of each transfer."""

    role = "desk"
    shares = ("transfers",)

    def flat_map(self, value: Transfer) -> Iterator[Entry]:
        self.share["transfers"] += 1
        yield from value.entries()


class Ledger(_Audited, KeyedProcessFunction, CheckpointListener):
    """Books entries, and emits each account's balance at the end of the input."""

    role = "ledger"
    shares = ("entries", "accounts", "cents")

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self._balance: ValueState[Balance] = runtime_context.get_state(ValueStateDescriptor("balance", Balance))

    def process_element(self, value: Entry, ctx: KeyedProcessFunction.Context) -> None:
        before = self._balance.value()
        if before is None:
            before = Balance.opening(value.account)
            self.share["accounts"] += 1
            self.share["cents"] += before.cents
            # Fires once, when event time reaches its end: after the last entry.
            ctx.timer_service().register_event_time_timer(_END_OF_TIME)
        after = before.after(value)
        self._balance.update(after)
        self.share["entries"] += 1
        self.share["cents"] += after.cents - before.cents

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Balance | None]:
        yield self._balance.value()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.log.completed(checkpoint_id)


class Statements(SinkFunction):
    """Writes each account's last balance."""

    def __init__(self, log: AuditLog) -> None:
        self.log = log

    def invoke(self, value: Balance, context: Any) -> None:
        self.log.state(value)


def build(
    env: StreamExecutionEnvironment, log: AuditLog, run: int, seed: int, transfers: int, rate: int | None
) -> None:
    """Put the job into an environment. `rate` is the most transfers per second; None: no limit."""
    limit = RateLimiterStrategy.no_op() if rate is None else RateLimiterStrategy.per_second(rate)
    source = DataGeneratorSource(TransferGenerator(seed), transfers, limit)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "transfers", Transfer).uid("transfers")
    entries = stream.flat_map(Desk(log, run), Entry).name("desk").uid("desk")
    balances = entries.key_by(lambda entry: entry.account, Types.LONG()).process(Ledger(log, run), Balance)
    balances.name("ledger").uid("ledger").add_sink(Statements(log)).name("statements").uid("statements")
