"""The engine's state and the users' never collide, whatever its names; state that no function asks for is kept."""

from __future__ import annotations

import logging

import pytest

from rekindle.common import Types
from rekindle.datastream import (
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from rekindle.datastream.state import ListStateDescriptor, ReducingStateDescriptor, ValueStateDescriptor
from rekindle.datastream.window import (
    CountTrigger,
    GlobalWindows,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
)
from rekindle.errors import GraphError
from rekindle.testing import InProcessJob
from tests.support.environments import environment

WORDS = ["a", "b", "a", "a", "b", "a"]
#: The names of the engine's own state, whole and in parts.
TAKEN = [
    "count",
    "trigger:count",
    "window:count",
    "window-contents",
    "window-elements",
    "merged-window",
    "tumble-count-assigner",
    "fire-time",
    "timeout",
    "reduce",
    "Rekindle:count",
]


@pytest.mark.parametrize("descriptor", [ValueStateDescriptor, ListStateDescriptor])
def test_a_name_of_the_engines_is_refused(descriptor):
    with pytest.raises(GraphError) as refused:
        descriptor("rekindle:count", int)
    assert str(refused.value) == (
        "State 'rekindle:count': names that begin with 'rekindle:' belong to Rekindle's own state: choose another one."
    )


def keyed(**settings):
    env = environment(1)
    if settings.get("checkpointed"):
        env.enable_checkpointing(1000)
    return env.from_collection(WORDS, Types.STRING()).uid("words").key_by(lambda word: word)


class Collects(ProcessWindowFunction):
    """Keeps texts under a name that the engine uses, too: for the window and for the key."""

    def __init__(self, name):
        self.name = name

    def process(self, key, context, elements):
        of_key = context.global_state().get_state(ValueStateDescriptor(self.name, Types.STRING()))
        of_window = context.window_state().get_list_state(ListStateDescriptor(self.name, Types.STRING()))
        of_key.update((of_key.value() or "") + key)
        of_window.add(key)
        yield of_key.value(), list(of_window.get()), len(list(elements))

    def clear(self, context):
        context.window_state().get_list_state(ListStateDescriptor(self.name, Types.STRING())).clear()


@pytest.mark.parametrize("name", TAKEN)
def test_users_may_take_every_name_inside_windows(name):
    counted = keyed().window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
    assert sorted(InProcessJob.of(counted.process(Collects(name))).run()) == [
        ("a", ["a"], 2),
        ("aa", ["a", "a"], 2),
        ("b", ["b"], 2),
    ]
    assert sorted(InProcessJob.of(keyed().count_window(2).process(Collects(name))).run()) == [
        ("a", ["a"], 2),
        ("aa", ["a"], 2),
        ("b", ["b"], 2),
    ]


class EverySecond(Trigger):
    """A count of its own, under the name that the trigger around it uses."""

    seen = ReducingStateDescriptor("timeout", lambda a, b: a + b, int)

    def on_element(self, element, timestamp, window, ctx):
        seen = ctx.get_partitioned_state(self.seen)
        seen.add(1)
        return TriggerResult.CONTINUE if seen.get() % 2 else TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        raise AssertionError("global windows never merge")

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.seen).clear()


def test_a_users_trigger_inside_a_built_in_one():
    trigger = ProcessingTimeoutTrigger.of(EverySecond(), 3_600_000)
    windows = keyed().window(GlobalWindows.create()).trigger(trigger)
    assert sorted(InProcessJob.of(windows.reduce(lambda a, b: a + b)).run()) == ["aa", "aa", "bb"]


class Counts(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


class Forgets(KeyedProcessFunction):
    """A later version of the program that does not use the count."""

    def process_element(self, value, ctx):
        yield value, 0


class CountsAll(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        self.total = context.get_operator_state_store().get_list_state(ListStateDescriptor("total", Types.LONG()))

    def snapshot_state(self, context):
        """Nothing to write: the state is always up to date."""

    def map(self, value):
        self.total.update([sum(self.total.get()) + 1])
        return value, sum(self.total.get())


class ForgetsAll(MapFunction):
    def map(self, value):
        return value, 0


@pytest.mark.parametrize("savepoint", [False, True])
@pytest.mark.parametrize(
    ("counting", "forgetting", "state", "expected"),
    [
        (lambda s: s.process(Counts()), lambda s: s.process(Forgets()), "count", [("b", 2), ("a", 3)]),
        (lambda s: s.map(CountsAll()), lambda s: s.map(ForgetsAll()), "total", [("b", 4), ("a", 5)]),
    ],
    ids=["keyed", "operator"],
)
def test_state_that_nobody_asks_for_is_told_and_kept(savepoint, counting, forgetting, state, expected, caplog):
    """As in Flink, a checkpoint keeps state that no function asked for; the engine logs it, too."""

    def program(version):
        return version(keyed(checkpointed=True)).uid("versions").name("versions")

    first = InProcessJob.of(program(counting), max_records=3)
    checkpoint = first.checkpoint(savepoint=savepoint)
    first.kill()
    second = InProcessJob.of(program(forgetting), restore=checkpoint, max_records=1)
    with caplog.at_level(logging.WARNING, "rekindle.state"):
        checkpoint = second.checkpoint(savepoint=savepoint)
        second.checkpoint(savepoint=savepoint, complete=False)
    second.kill()
    assert [record.getMessage() for record in caplog.records] == [
        f"versions (1/1): nothing has asked for the restored state '{state}' so far. It is kept in every checkpoint; "
        "if it was renamed, give it its name back."
    ]
    assert InProcessJob.of(program(counting), restore=checkpoint).run() == expected


def test_state_that_is_asked_for_is_not_told(caplog):
    first = InProcessJob.of(keyed().process(Counts()).uid("versions"), max_records=3)
    checkpoint = first.checkpoint()
    first.kill()
    second = InProcessJob.of(keyed().process(Counts()).uid("versions"), restore=checkpoint, max_records=1)
    with caplog.at_level(logging.WARNING, "rekindle.state"):
        second.checkpoint()
    second.kill()
    assert not caplog.records
