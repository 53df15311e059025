"""I16 on Spark: the driver or a slot finds damage; the checkpoint is refused by name, or an older one is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint import load_checkpoint
from rekindle.checkpoint.paths import metadata_path, url_of
from rekindle.checkpoint.store.local import LocalStore
from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.functions import TwoPhaseCommitSinkFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import CorruptCheckpointError
from tests.support.environments import checkpointed
from tests.support.listed_checkpoints import list_checkpoints

RECORDS, KEYS, PER_SECOND = 8000, 200, 2000
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
ALLOW = "rekindle.state-recovery.allow-older-checkpoint"


class Count(KeyedProcessFunction):
    """Counts per key, with a text that makes the state too large for the manifest."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.text.update("x" * 100 + str(count))
        yield value % KEYS, count


class Nowhere(TwoPhaseCommitSinkFunction):
    """A sink that commits nothing, but counts as one that commits."""

    def begin_transaction(self):
        return "nothing"

    def invoke(self, transaction, value, context):
        """Nothing is written."""

    def pre_commit(self, transaction):
        """Nothing is written."""

    def commit(self, transaction):
        """Nothing is written."""

    def abort(self, transaction):
        """Nothing is written."""


def counts(directory: Path, **settings: str):
    keys: dict[str, Any] = {
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.num-retained": "3",
        **settings,
    }
    env = checkpointed(2, 200, directory=directory, restarts=2, **keys)
    source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")
    return env, numbers.key_by(lambda n: n % KEYS, int).process(Count(), PAIR).uid("count")


@pytest.fixture(scope="module")
def cancelled(spark, tmp_path_factory) -> Path:
    """The directory of a job that was cancelled with three checkpoints."""
    directory = tmp_path_factory.mktemp("cancelled")
    _, stream = counts(directory)
    with stream.execute_and_collect("damaged") as results:
        for _ in results:
            if len(list_checkpoints(LocalStore(directory), "damaged")) == 3:
                break
        job = results._job
    job.result().exception()
    assert len(list_checkpoints(LocalStore(directory), "damaged")) == 3
    return directory


@pytest.fixture
def directory(cancelled, tmp_path) -> Path:
    """A copy of that directory, to damage."""
    store, copy = LocalStore(cancelled), LocalStore(tmp_path / "checkpoints")
    for entry in store.list():
        copy.put(entry.path, store.read(entry.path))
    return tmp_path / "checkpoints"


def flip(store: LocalStore, path: str) -> None:
    data = bytearray(store.read(path))
    data[len(data) // 2] ^= 1
    store.put(path, bytes(data))


def flip_state(store: LocalStore, folder: str) -> str:
    """Change a byte in a file that only this checkpoint needs. Returns the file's name."""
    older = [load_checkpoint.load(store, each).manifest.files() for each in list_checkpoints(store, "damaged")[:-1]]
    loaded = load_checkpoint.load(store, folder)
    own = sorted(set(loaded.manifest.files()) - {file for files in older for file in files})
    flip(store, f"{loaded.root}/{own[0]}")
    return own[0]


def first_counts(results) -> dict[int, int]:
    first: dict[int, int] = {}
    for key, count in results:
        first[key] = min(count, first.get(key, count))
    return first


@pytest.mark.parametrize("where", ["metadata", pytest.param("state", marks=pytest.mark.long)])
def test_without_a_committing_sink_the_older_one_is_taken(spark, directory, where, caplog):
    store = LocalStore(directory)
    *_, older, newest = list_checkpoints(store, "damaged")
    damaged = metadata_path(newest) if where == "metadata" else flip_state(store, newest)
    if where == "metadata":
        flip(store, damaged)
    _, stream = counts(directory, **{"execution.state-recovery.path": "latest"})
    with stream.execute_and_collect("damaged") as results:
        found = list(results)
    warned = [record.getMessage() for record in caplog.records if "is restored instead" in record.getMessage()]
    assert warned
    assert all(damaged in text and older in text for text in warned)
    for key in range(KEYS):
        own = sorted(count for each, count in found if each == key)
        assert own == list(range(RECORDS // KEYS + 1 - len(own), RECORDS // KEYS + 1)), "nothing lost, nothing twice"
    assert max(first_counts(found).values()) > 1, "it began anew"


@pytest.mark.parametrize("where", [pytest.param("metadata", marks=pytest.mark.long), "state"])
def test_with_a_committing_sink_it_is_refused_and_the_older_one_offered(spark, directory, where):
    store = LocalStore(directory)
    *_, older, newest = list_checkpoints(store, "damaged")
    damaged = metadata_path(newest) if where == "metadata" else flip_state(store, newest)
    if where == "metadata":
        flip(store, damaged)
    env, stream = counts(directory, **{"execution.state-recovery.path": "latest"})
    stream.add_sink(Nowhere()).name("ledger")
    with pytest.raises(CorruptCheckpointError) as caught:
        env.execute("damaged")
    text = str(caught.value)
    assert damaged in text
    assert f"the newest older good checkpoint is {url_of(store, older)}" in text
    assert "'Sink: ledger' would hand out again" in text
    # With the permission that the message names the job goes on.
    env, stream = counts(directory, **{"execution.state-recovery.path": "latest", ALLOW: "true"})
    stream.add_sink(Nowhere()).name("ledger")
    env.execute("damaged")
