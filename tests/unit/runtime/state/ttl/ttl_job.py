"""Keyed state of every kind with a time to live, on a clock that the test turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rekindle.common import Time, Types
from rekindle.datastream.functions import AggregateFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.testing import ManualClock
from tests.support.whole_state import whole_parts

GROUPS = 4
TTL_MS = 10
START_MS = 1_700_000_000_000
KINDS = ["value", "list", "map", "reducing", "aggregating"]
Parts = list[tuple[int, bytes]]
Setting = Callable[[StateTtlConfig.Builder], StateTtlConfig.Builder]


class Total(AggregateFunction):
    """Sums, in a list that is changed in place."""

    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0]]


def ttl(*settings: Setting, background: bool = False) -> StateTtlConfig:
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
    if not background:
        builder.disable_cleanup_in_background()
    for setting in settings:
        setting(builder)
    return builder.build()


def expired_too(builder: StateTtlConfig.Builder) -> StateTtlConfig.Builder:
    return builder.return_expired_if_not_cleaned_up()


def on_read(builder: StateTtlConfig.Builder) -> StateTtlConfig.Builder:
    return builder.update_ttl_on_read_and_write()


def in_full_snapshot(builder: StateTtlConfig.Builder) -> StateTtlConfig.Builder:
    return builder.cleanup_full_snapshot()


def incrementally(size: int, every_record: bool = False) -> Setting:
    return lambda builder: builder.cleanup_incrementally(size, every_record)


def descriptor_of(kind: str, config: StateTtlConfig | None) -> StateDescriptor:
    descriptors: dict[str, StateDescriptor] = {
        "value": ValueStateDescriptor("state", Types.LONG()),
        "list": ListStateDescriptor("state", Types.LONG()),
        "map": MapStateDescriptor("state", Types.STRING(), Types.LONG()),
        "reducing": ReducingStateDescriptor("state", lambda a, b: a + b, Types.LONG()),
        "aggregating": AggregatingStateDescriptor("state", Total(), Types.LIST(Types.LONG())),
    }
    if config is not None:
        descriptors[kind].enable_time_to_live(config)
    return descriptors[kind]


class Job:
    """A backend with one state of a kind: `write` makes it hold one number, `read` gives that number or None."""

    def __init__(
        self, kind: str, config: StateTtlConfig | None, clock: ManualClock | None = None, parts: Iterable[Any] = ()
    ) -> None:
        self.kind = kind
        self.clock = clock or ManualClock(START_MS)
        self.backend = HashMapKeyedBackend(GROUPS, range(GROUPS), KeyedStateOptions(clock=self.clock))
        self.backend.restore(parts)
        self.state: Any = keyed_state(self.backend, descriptor_of(kind, config))

    def at(self, key: Any) -> Job:
        self.backend.set_current_key(key)
        return self

    def write(self, number: int) -> Job:
        match self.kind:
            case "map":
                self.state.put("field", number)
            case "list":
                self.state.update([number])
            case "value":
                self.state.update(number)
            case _:
                self.state.add(number)
        return self

    def read(self) -> Any:
        match self.kind:
            case "map":
                return self.state.get("field")
            case "list":
                return next(iter(self.state.get()), None)
            case "value":
                return self.state.value()
            case _:
                return self.state.get()

    def after(self, milliseconds: int) -> Job:
        self.clock.advance(milliseconds)
        return self

    def held(self) -> set[Any]:
        """The keys whose entry is still there, expired or not."""
        return set(self.backend.keys())

    def full(self) -> Parts:
        return whole_parts(self.backend)

    def delta(self, snapshot_id: int, since: int | None) -> Parts:
        return list(self.backend.snapshot_delta(snapshot_id, since).encode())

    def checkpoint(self, snapshot_id: int, since: int | None) -> Parts:
        parts = self.delta(snapshot_id, since)
        self.backend.snapshot_completed(snapshot_id)
        return parts


def list_with_ages(*settings: Setting) -> Job:
    """Elements 0, None, 2 written 4 ms apart; the first one has expired."""
    job = Job("list", ttl(*settings)).at("k")
    job.state.add(0)
    job.after(4).state.add_all([None])
    job.after(4).state.add(2)
    return job.after(2)


def map_with_ages(*settings: Setting) -> Job:
    """Fields a, b (None) and None written 4 ms apart; the first one has expired."""
    job = Job("map", ttl(*settings)).at("k")
    job.state.put("a", 0)
    job.after(4).state.put("b", None)
    job.after(4).state.put_all({None: 2})
    return job.after(2)


def with_expired_keys(kind: str, config: StateTtlConfig, number: int = 20) -> Job:
    job = Job(kind, config)
    for key in range(number):
        job.at(key).write(1)
    return job.after(TTL_MS).at("other")
