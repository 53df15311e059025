"""Faults of Spark and of slots, on a session with Spark's default retries: no record is lost or doubled silently.

`programs/spark_faults.py` plays all scenes on one session of its own; each test checks one scene.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rekindle.common import Configuration
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import ClusterError
from tests.support.running_program import RunningProgram

pytestmark = pytest.mark.timeout(600)

Scene = dict[str, Any]
SCENES_DEADLINE_S = 500.0
EVERY_KEY_50_TIMES = {"0": 50, "1": 50, "2": 50, "3": 50}


@pytest.fixture(scope="module")
def scenes() -> Iterator[dict[str, Scene]]:
    with RunningProgram("spark_faults.py") as program:
        status = program.wait(SCENES_DEADLINE_S)
        told = [json.loads(line) for line in program.out]
        assert status == 0, "\n".join(program.errors)
        yield {each["scene"]: each for each in told}


def test_undisturbed_the_job_counts_right_in_one_epoch(scenes: dict[str, Scene]) -> None:
    assert scenes["undisturbed"]["results"] == {**EVERY_KEY_50_TIMES, "epochs": 1}


# -- a Spark task that runs again after it has fed its slot ------------------------------------------------------------


@pytest.mark.parametrize(("task", "stage"), [("source task", 0), ("keyed task", 1)])
def test_a_task_that_spark_runs_again_is_refused_by_its_slot(scenes: dict[str, Scene], task: str, stage: int) -> None:
    scene = scenes[f"{task} again"]
    assert scene["error"] == "ProtocolError"
    assert scene["message"] == f"Slot 1 refused: epoch 1, stage {stage} was fed before; a Spark task was run again"


def test_without_the_fence_the_job_would_succeed_with_doubled_or_missing_data(scenes: dict[str, Scene]) -> None:
    """Only the fence helps: Spark does retry the task, and no other check would notice."""
    doubled = scenes["keyed task again, no fence"]["results"]
    assert doubled.keys() == EVERY_KEY_50_TIMES.keys()
    assert sum(doubled.values()) > 200
    # A source that is polled again goes on from its position: the records of the failed task are gone.
    assert sum(scenes["source task again, no fence"]["results"].values()) < 200


# -- a Spark job that succeeds although a slot died --------------------------------------------------------------------


def test_an_epoch_does_not_count_when_a_slot_died_before_its_end(scenes: dict[str, Scene]) -> None:
    scene = scenes["slot dies"]
    assert scene["error"] in ("SlotLostError", "ClusterError"), "whoever sees it first"
    assert "Slot 1" in scene["message"] or "slots [1]" in scene["message"]


def test_it_does_not_count_either_when_the_drivers_threads_have_not_noticed_yet(scenes: dict[str, Scene]) -> None:
    scene = scenes["slot dies unseen"]
    assert scene["error"] == "ClusterError"
    assert scene["message"] == "Epoch 1 does not count: slots [1] were gone at its end."


def test_a_slot_that_dies_before_its_functions_are_closed_fails_the_job(scenes: dict[str, Scene]) -> None:
    scene = scenes["slot dies in close"]
    assert scene["error"] == "SlotLostError"
    assert scene["message"].startswith("Slot 1 (process ")
    assert "it ended before its functions were closed" in scene["message"]


# -- nothing is missing, nothing is twice (I3) ------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["first", "repeated"])
def test_a_gap_or_a_repetition_between_stages_fails_the_epoch_by_name(scenes: dict[str, Scene], change: str) -> None:
    scene = scenes[change]
    assert scene["error"] == "JobExecutionError"
    assert "Spark delivered a chunk twice or lost one" in scene["message"]
    assert "Channel (" in scene["message"]


def test_a_lost_last_chunk_leaves_no_gap_but_the_counts_tell(scenes: dict[str, Scene]) -> None:
    scene = scenes["last"]
    assert scene["error"] == "ProtocolError"
    assert scene["message"].startswith("Epoch 1 does not count: edge 0 from subtask 0 to ")
    assert scene["message"].count(" records sent, ") == 1


# -- sessions of the user's own ---------------------------------------------------------------------------------------


def test_a_borrowed_session_is_as_it_was_and_usable(scenes: dict[str, Scene]) -> None:
    before, after = scenes["borrowed"]["results"]
    # Spark itself notes where its warehouse would be when the first query runs.
    after["conf"].pop("spark.sql.warehouse.dir", None)
    before["conf"].pop("spark.sql.warehouse.dir", None)
    assert after == before
    assert after["thousand"] == 1000
    assert after["properties"] == {"mine": "kept"}


def test_a_session_that_is_stopped_under_a_job_is_said_in_a_sentence(scenes: dict[str, Scene]) -> None:
    scene = scenes["stopped"]
    assert scene["error"] == "ClusterError"
    assert scene["message"] == "The Spark session was stopped while the job 'stopped under it' ran."


def test_a_dataframe_of_a_stopped_session_is_said_in_a_sentence(scenes: dict[str, Scene]) -> None:
    scene = scenes["frame of a stopped session"]
    assert scene["error"] == "ClusterError"
    assert scene["message"].startswith("This DataFrame's Spark session was stopped: ")
    assert "\n" not in scene["message"]


def test_spark_connect_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:15002")
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.from_collection([1, 2, 3]).print()
    with pytest.raises(ClusterError) as caught:
        env.execute("over connect")
    assert str(caught.value).startswith("Rekindle cannot run over Spark Connect (sc://localhost:15002), which")
    assert "\n" not in str(caught.value)
