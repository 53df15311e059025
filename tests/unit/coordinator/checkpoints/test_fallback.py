"""I16: a damaged checkpoint is left for an older one only where nothing is handed out twice by it, or by permission."""

from __future__ import annotations

import logging

import pytest

from rekindle.checkpoint.paths import metadata_path
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.common import Configuration
from rekindle.coordinator.checkpoints.fallback import GoingBack, choose_restore, decide, load_or_older
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.functions import TwoPhaseCommitSinkFunction
from rekindle.errors import CorruptCheckpointError
from rekindle.graph.build import build_plan
from tests.unit.checkpoint.samples import folder, published, state_file, take_over

NEVER = GoingBack(committing=("Sink: orders",))


def flip(store, path):
    data = bytearray(store.read(path))
    data[len(data) // 2] ^= 1
    store.put(path, bytes(data))


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def three(store):
    claim = take_over(store)
    return [published(store, claim, number) for number in (1, 2, 3)]


# -- the decision ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("going_back", "taken"),
    [
        (GoingBack(), True),
        (GoingBack(allowed=True), True),
        (NEVER, False),
        (GoingBack(committing=("Sink: orders",), allowed=True), True),
    ],
)
def test_which_jobs_go_back_without_asking(going_back, taken):
    if taken:
        assert decide("chk-7 is damaged.", "s3://c/chk-6", going_back) == "s3://c/chk-6"
        return
    with pytest.raises(CorruptCheckpointError) as caught:
        decide("chk-7 is damaged.", "s3://c/chk-6", going_back)
    assert caught.value.alternative == "s3://c/chk-6"
    text = str(caught.value)
    assert text.startswith("chk-7 is damaged. It cannot be restored; the newest older good checkpoint is s3://c/chk-6.")
    assert "'Sink: orders' would hand out again" in text
    assert "rekindle.state-recovery.allow-older-checkpoint" in text
    assert "execution.state-recovery.path" in text


def test_without_an_older_checkpoint_the_damage_is_raised():
    for going_back in (GoingBack(), NEVER, GoingBack(allowed=True)):
        with pytest.raises(CorruptCheckpointError, match="there is no older good checkpoint beside it") as caught:
            decide("chk-7 is damaged.", None, going_back)
        assert caught.value.alternative is None


class Plain:
    """A sink without a committer."""

    def create_writer(self, context):
        raise AssertionError("never opened")


class Committing(Plain):
    def create_committer(self, context):
        raise AssertionError("never opened")

    def get_committable_serializer(self):
        return None


class Transactions(TwoPhaseCommitSinkFunction):
    def begin_transaction(self):
        return "t"

    def invoke(self, transaction, value, context):
        """Nothing is written."""

    def pre_commit(self, transaction):
        """Nothing is written."""

    def commit(self, transaction):
        """Nothing is written."""

    def abort(self, transaction):
        """Nothing is written."""


def plan(sink=None, allow=False):
    settings = {"rekindle.state-recovery.allow-older-checkpoint": str(allow)}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(1).enable_checkpointing(1000)
    stream = env.from_collection([1], int)
    if sink is None:
        return build_plan(env._program("orders", stream._collect()))
    end = stream.add_sink(sink) if isinstance(sink, TwoPhaseCommitSinkFunction) else stream.sink_to(sink)
    end.name("orders")
    return build_plan(env._program("orders"))


@pytest.mark.parametrize(
    ("sink", "committing"), [(Plain(), ()), (Committing(), ("Sink: orders",)), (Transactions(), ("Sink: orders",))]
)
def test_the_sinks_that_commit(sink, committing):
    assert GoingBack.of(plan(sink)) == GoingBack(committing)
    assert GoingBack.of(plan(sink), results_given_out=True) == GoingBack(committing)
    assert GoingBack.of(plan(sink, allow=True)).allowed


def test_results_that_were_given_out_cannot_be_taken_back():
    """A running `execute_and_collect` is like a sink that commits; a new one has given out nothing."""
    assert GoingBack.of(plan()).committing == ()
    assert len(GoingBack.of(plan(), results_given_out=True).committing) == 1


# -- with a store ------------------------------------------------------------------------------------------------------


def damaged_in_a_slot(text="The state file shared/3-1-op-0.state is damaged."):
    """Damage that a slot finds: the driver gets only the sentence."""
    return CorruptCheckpointError(text)


def test_the_newest_older_checkpoint_that_is_whole_is_chosen(store, three, caplog):
    one, two, last = three
    flip(store, state_file(two))
    loaded = choose_restore(store, folder(last), damaged_in_a_slot(), GoingBack())
    assert (loaded.path, loaded.manifest) == (folder(one), one)
    assert caplog.records[0].levelno == logging.WARNING
    assert f"memory://{folder(one)}, is restored instead" in caplog.text


def test_with_a_committing_sink_the_older_checkpoint_is_only_offered(store, three):
    _, two, last = three
    with pytest.raises(CorruptCheckpointError, match="state is damaged") as caught:
        choose_restore(store, folder(last), damaged_in_a_slot(), NEVER)
    assert caught.value.alternative == f"memory://{folder(two)}"


def test_no_older_checkpoint_is_whole(store, three):
    one, two, last = three
    flip(store, state_file(one))
    store.delete(state_file(two))
    with pytest.raises(CorruptCheckpointError, match="there is no older good checkpoint"):
        choose_restore(store, folder(last), damaged_in_a_slot(), GoingBack(allowed=True))


def test_a_damaged_checkpoint_is_replaced_when_it_is_loaded(store, three):
    one, two, last = three
    assert load_or_older(store, folder(last), NEVER).manifest == last
    flip(store, metadata_path(folder(last)))
    with pytest.raises(CorruptCheckpointError, match=r"chk-3/_metadata is damaged.*newest older good checkpoint is"):
        load_or_older(store, folder(last), NEVER)
    assert load_or_older(store, folder(last), GoingBack()).manifest == two
    flip(store, state_file(two))
    assert load_or_older(store, folder(last), GoingBack()).manifest == one, "not read to its last byte"


def test_a_damaged_savepoint_has_no_older_one(store):
    store.put("savepoint-0a1b2c-1d2e3f/_metadata", b"REKINDLE")
    with pytest.raises(CorruptCheckpointError, match="there is no older good checkpoint"):
        load_or_older(store, "savepoint-0a1b2c-1d2e3f", GoingBack(allowed=True))
