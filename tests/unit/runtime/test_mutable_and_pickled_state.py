"""State that only pickle can write (I20), and state that user code changes in place (I13)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rekindle.checkpoint import load_checkpoint
from rekindle.common import Types
from rekindle.datastream import KeyedProcessFunction
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.errors import GraphError, SerializationError
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed, environment

# -- values that user code changes in place (I13) ----------------------------------------------------------------------


class Mutating(KeyedProcessFunction):
    """Changes its state values in place, before and after the barrier."""

    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.PICKLED_BYTE_ARRAY()))
        mapped = MapStateDescriptor("mapped", Types.STRING(), Types.PICKLED_BYTE_ARRAY())
        self.mapped = runtime_context.get_map_state(mapped)
        self.listed = runtime_context.get_list_state(ListStateDescriptor("listed", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        held = self.value.value() or {"seen": []}
        held["seen"].append(value)
        self.value.update(held)
        inner = self.mapped.get("inner") or []
        inner.append(value)
        self.mapped.put("inner", inner)
        self.listed.add([value])
        yield list(held["seen"]), list(inner), [list(each) for each in self.listed.get()]


def test_what_user_code_changes_in_place_after_the_barrier_is_not_in_the_snapshot():
    """I13: mutable values are encoded in the synchronous part, though the upload comes much later."""

    def program():
        return checkpointed().from_collection(list(range(8)), int).key_by(lambda n: 0, int).process(Mutating())

    job = InProcessJob.of(program(), max_records=2)
    first = job.checkpoint(complete=False)
    second = job.checkpoint(complete=False)
    job.epoch()
    for taken in (first, second):  # encoded only now
        job.complete(taken)
    job.kill()
    for taken, seen in ((first, 2), (second, 4)):
        after = InProcessJob.of(program(), max_records=2, restore=taken).run()
        numbers = list(range(seen + 1))
        assert after[0] == (numbers, numbers, [[number] for number in numbers])


# -- values that only pickle can write (I20) ---------------------------------------------------------------------------


class Opaque:
    """Only pickle can write it."""

    def __init__(self, number):
        self.number = number


class KeepOpaque(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        before = self.last.value()
        self.last.update(Opaque(value))
        yield None if before is None else before.number


def opaque_program(**settings: Any) -> Any:
    stream = environment(**settings).from_collection(list(range(6)), int)
    return stream.key_by(lambda n: 0, int).process(KeepOpaque(), Types.LONG())


def test_metadata_is_read_without_pickle(monkeypatch):
    """I20: finding, verifying and sharing out a checkpoint unpickles nothing, whatever its state contains."""
    job = InProcessJob.of(opaque_program(), max_records=3)
    checkpoint = job.checkpoint()
    manifest = checkpoint.manifest
    job.kill()

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("pickle was asked to read metadata")

    with monkeypatch.context() as patch:
        for name in ("load", "loads", "Unpickler"):
            patch.setattr(pickle, name, refuse)
        assert load_checkpoint.load(checkpoint.store, checkpoint.path, deep=True).manifest == manifest
    assert InProcessJob.of(opaque_program(), restore=checkpoint).run() == [2, 3, 4]


def test_pickled_state_is_refused_where_the_settings_say_so():
    """I20: undeclared elements when the job is built, values of a declared-as-anything state when they are written."""
    refuse = {"state.pickle": "refuse"}
    job = InProcessJob.of(opaque_program(**refuse))
    declined = job.checkpoint().declined
    assert declined is not None
    assert isinstance(declined.__cause__, SerializationError)
    assert "Opaque" in str(declined.__cause__)
    job.kill()
    with pytest.raises(GraphError, match=r"state.pickle is 'refuse', but the job would pickle records from"):
        InProcessJob.of(environment(2, **refuse).from_collection([1]).key_by(lambda n: n).process(KeepOpaque()))
