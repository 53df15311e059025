"""Checkpoints that a job refuses: damaged files (I16), missing operators, another number of key groups."""

from __future__ import annotations

from collections import Counter

import pytest

from rekindle.errors import CorruptCheckpointError, IncompatibleStateError
from rekindle.graph.nodes import OperatorKind
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed, environment
from tests.unit.runtime.checkpoint_programs import Gathered, every_kind_of_state, keyed_sums

# -- missing operators -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("section", ["state-recovery", "savepoint"])
def test_an_operator_that_is_gone_is_named_and_may_be_dropped(section):
    """By Flink's name for the setting, and by its older one."""

    def numbers(allow=False):
        env = environment(**{f"execution.{section}.ignore-unclaimed-state": str(allow)})
        return env.from_collection([1, 2, 3], int)

    job = InProcessJob.of(numbers().key_by(lambda n: n, int).process(Gathered()).name("gathered"), max_records=1)
    checkpoint = job.checkpoint()
    job.kill()
    with pytest.raises(IncompatibleStateError, match="state of the operator 'gathered'"):
        InProcessJob.of(numbers().map(str), restore=checkpoint)
    assert InProcessJob.of(numbers(allow=True).map(str), restore=checkpoint).run() == ["2", "3"]


# -- damage (I16) ------------------------------------------------------------------------------------------------------


def cut_short(data):
    return data[:-3]


def flipped(data):
    changed = bytearray(data)
    changed[len(data) * 2 // 3] ^= 1
    return bytes(changed)


def foreign(data):
    return b"PK\x03\x04 an archive"


def of_another_format(data):
    changed = bytearray(data)
    changed[8] = 2  # the format's version
    return bytes(changed)


@pytest.mark.parametrize(
    ("file", "damage", "sentence"),
    [
        ("_metadata", cut_short, r"chk-2/_metadata is truncated"),
        ("_metadata", flipped, r"chk-2/_metadata is damaged: its checksum"),
        ("_metadata", foreign, r"chk-2/_metadata was not written by Rekindle"),
        ("_metadata", of_another_format, r"chk-2/_metadata has format 2, which another version of Rekindle wrote"),
        (".state", cut_short, r"state file .*shared/2-.*\.state is truncated"),
        (".state", flipped, r"state file .*shared/2-.*\.state is damaged: the checksum"),
        (".state", lambda data: None, r"state file .*shared/2-.*\.state is missing"),
    ],
)
def test_a_damaged_checkpoint_is_refused_by_name(file, damage, sentence):
    """I16: a restoring task compares the checksums of its state; the older checkpoint is still good."""
    job = InProcessJob.of(every_kind_of_state(checkpointed(2)), max_records=5)
    first, second = job.checkpoint(), job.checkpoint()
    job.kill()
    store = second.store
    for entry in store.list():
        if ("/chk-2/" in entry.path or "/2-" in entry.path) and entry.path.endswith(file):
            content = damage(store.read(entry.path))
            store.delete(entry.path)
            if content is not None:
                store.put(entry.path, content)
    with pytest.raises(CorruptCheckpointError, match=sentence):
        InProcessJob.of(every_kind_of_state(checkpointed(3)), restore=second)
    collected = first.results + InProcessJob.of(every_kind_of_state(checkpointed(2)), restore=first).run()
    clean = InProcessJob.of(every_kind_of_state(checkpointed(2))).run()
    assert Counter(map(repr, collected)) == Counter(map(repr, clean))


# -- the number of key groups ------------------------------------------------------------------------------------------


def with_key_groups(parallelism, maximum=None):
    env = checkpointed(parallelism)
    if maximum is not None:
        env.set_max_parallelism(maximum)
    return keyed_sums(env)


def keyed_cut(maximum):
    job = InProcessJob.of(with_key_groups(2, maximum), max_records=10)
    checkpoint = job.checkpoint()
    job.kill()
    return checkpoint


@pytest.mark.parametrize("parallelism", [1, 2, 3, 7])
def test_a_maximum_that_nobody_sets_is_the_stored_one(parallelism):
    checkpoint = keyed_cut(7)
    restored = InProcessJob.of(with_key_groups(parallelism), restore=checkpoint)
    assert {node.name: node.max_parallelism for node in restored.plan.nodes}["Reduce"] == 7
    collect = next(node for node in restored.plan.nodes if node.kind is OperatorKind.COLLECT)
    assert collect.max_parallelism == 128, "nothing binds it"
    collected = checkpoint.results + restored.run()
    assert sorted(collected) == sorted(InProcessJob.of(with_key_groups(2)).run())


def test_another_maximum_is_refused_by_name():
    with pytest.raises(IncompatibleStateError, match=r"'Reduce' has maximum parallelism 9.*saved with 7.*set_max_para"):
        InProcessJob.of(with_key_groups(2, 9), restore=keyed_cut(7))


@pytest.mark.parametrize("maximum", [None, 128])
def test_more_subtasks_than_key_groups_are_refused_by_name(maximum):
    with pytest.raises(IncompatibleStateError, match=r"'Reduce' cannot run with parallelism 8: its state has 7 key gr"):
        InProcessJob.of(with_key_groups(8, maximum), restore=keyed_cut(7))


def test_the_stored_maximum_is_kept_over_several_restores():
    job = InProcessJob.of(with_key_groups(3), max_records=10, restore=keyed_cut(7))
    checkpoint = job.checkpoint()
    job.kill()
    restored = InProcessJob.of(with_key_groups(1), restore=checkpoint)
    assert {node.name: node.max_parallelism for node in restored.plan.nodes}["Reduce"] == 7
    restored.run()
