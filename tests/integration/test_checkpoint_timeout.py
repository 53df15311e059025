"""A checkpoint's time runs from its trigger, whatever the tasks are doing (I22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.common import Types
from rekindle.common.checkpoint_statistics import CheckpointStatus
from rekindle.datastream import CheckpointedFunction, CheckpointListener, MapFunction
from rekindle.errors import CheckpointError
from tests.support.environments import checkpointed
from tests.support.waiting import wait_until

DEADLINE_S = 60.0
#: On a busy machine the last checkpoint of a job, which has the same timeout, takes its time too.
TIMEOUT_MS = 2000


class Gate:
    """Holds user code up until a test opens it."""

    def __init__(self, folder: Path) -> None:
        self.reached, self.opened = folder / "reached", folder / "opened"

    def pass_through(self) -> None:
        self.reached.touch()
        wait_until(self.opened.exists, "the test opens the gate", DEADLINE_S)

    def open(self) -> None:
        self.opened.touch()


class SlowSnapshot(MapFunction, CheckpointedFunction, CheckpointListener):
    """Its first snapshot waits at a gate; it notes the checkpoints whose abort it is told."""

    def __init__(self, gate: Gate, heard: Path) -> None:
        self.gate, self.heard = gate, heard

    def map(self, value):
        return value

    def initialize_state(self, context):
        """Nothing to restore."""

    def snapshot_state(self, context):
        if context.get_checkpoint_id() == 1:
            self.gate.pass_through()

    def notify_checkpoint_complete(self, checkpoint_id):
        """Nothing to do: the test is about aborted checkpoints."""

    def notify_checkpoint_aborted(self, checkpoint_id):
        with self.heard.open("a") as file:
            file.write(f"{checkpoint_id}\n")


class SlowRecord(MapFunction):
    """Its first record waits at a gate, so that the barrier behind that record does not arrive."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def map(self, value):
        self.gate.pass_through()
        return value


def with_timeout(tmp_path: Path, tolerable: int):
    env = checkpointed(1, 100, directory=tmp_path / "checkpoints", restarts=0)
    env.get_checkpoint_config().set_checkpoint_timeout(TIMEOUT_MS)
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(tolerable)
    return env


def failed(client):
    history = client.get_checkpoint_statistics().history
    return [each for each in history if each.status is CheckpointStatus.FAILED]


def test_a_checkpoint_is_aborted_while_a_snapshot_still_takes_its_time(spark, tmp_path):
    gate, heard = Gate(tmp_path), tmp_path / "heard"
    env = with_timeout(tmp_path, tolerable=1000)
    env.from_sequence(1, 1000).map(SlowSnapshot(gate, heard), Types.LONG()).print()
    client = env.execute_async("slow snapshot")
    wait_until(gate.reached.exists, "the first snapshot begins", DEADLINE_S)
    wait_until(lambda: failed(client), "the checkpoint expires", DEADLINE_S)
    first = min(failed(client), key=lambda each: each.id)
    assert first.id == 1
    assert "expired" in first.failure_message
    assert first.failure_timestamp_ms - first.trigger_timestamp_ms >= TIMEOUT_MS
    gate.open()
    client.get_job_execution_result().result(DEADLINE_S)
    assert "1" in heard.read_text().split(), "the listener is told"
    assert client.get_checkpoint_statistics().counts.completed, "the next one covers more"


def test_a_checkpoint_is_aborted_while_its_barrier_waits_behind_a_slow_record(spark, tmp_path):
    gate = Gate(tmp_path)
    env = with_timeout(tmp_path, tolerable=1000)
    env.from_sequence(1, 3).key_by(lambda n: n, Types.LONG()).map(SlowRecord(gate), Types.LONG()).print()
    client = env.execute_async("slow record")
    asked = [client.trigger_checkpoint()]

    def record_came() -> bool:
        if asked[-1].done():  # one at a time: the job makes all that were asked for before it ends
            asked.append(client.trigger_checkpoint())
        return gate.reached.exists()

    wait_until(record_came, "the first record comes", DEADLINE_S)
    wait_until(lambda: failed(client), "the checkpoint expires", DEADLINE_S)
    gate.open()
    client.get_job_execution_result().result(DEADLINE_S)
    assert client.get_checkpoint_statistics().counts.completed


def test_an_expired_checkpoint_counts_against_the_tolerance(spark, tmp_path):
    gate = Gate(tmp_path)
    env = with_timeout(tmp_path, tolerable=0)
    env.from_sequence(1, 1000).map(SlowSnapshot(gate, tmp_path / "heard"), Types.LONG()).print()
    client = env.execute_async("no tolerance")
    wait_until(gate.reached.exists, "the first snapshot begins", DEADLINE_S)
    with pytest.raises(CheckpointError, match=r"tolerable failure threshold .*expired"):
        client.get_job_execution_result().result(DEADLINE_S)
    gate.open()
