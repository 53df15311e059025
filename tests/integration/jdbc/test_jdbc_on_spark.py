"""JDBC sinks in jobs on Spark, whose slots and servers are killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rekindle.common import WatermarkStrategy
from rekindle.crash_points import CRASH_AT, CRASH_ONCE
from rekindle.datastream import CheckpointListener, MapFunction
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.errors import JobExecutionError
from tests.integration.jdbc.jdbc_jobs import PAIR, PostgresTable, table_on
from tests.support.environments import checkpointed
from tests.support.waiting import wait_until
from tools.servers.postgres import PostgresServer

RECORDS, PER_SECOND = 1200, 1000
DEADLINE_S = 60.0
EXPECTED = [(number, f"v{number}") for number in range(RECORDS)]


def pairs(env: Any, per_second: float = PER_SECOND) -> Any:
    source = DataGeneratorSource(lambda n: (n, f"v{n}"), RECORDS, RateLimiterStrategy.per_second(per_second))
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "pairs", PAIR).uid("pairs")


@pytest.fixture
def crash_slots(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """Sets a crash point for the slots that Spark starts in this test; returns the file that the dead slot leaves."""
    environment = spark.sparkContext.environment

    def arm(point: str) -> Path:
        environment[CRASH_AT], environment[CRASH_ONCE] = point, str(tmp_path / "crashed")
        return tmp_path / "crashed"

    yield arm
    for variable in (CRASH_AT, CRASH_ONCE):
        environment.pop(variable, None)


class FailOnce(MapFunction, CheckpointListener):
    """Fails in the first attempt, at the first record after a completed checkpoint."""

    def open(self, runtime_context: Any) -> None:
        self.first = runtime_context.get_attempt_number() == 0
        self.fails = False

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.fails = self.first

    def map(self, value: Any) -> Any:
        if self.fails:
            raise RuntimeError("the first attempt fails on purpose")
        return value


@pytest.mark.parametrize(
    ("database", "point"),
    [
        ("postgres", "before-commit:2"),
        ("postgres", "after-commit:2"),
        ("postgres", "before-recommit"),
        ("mariadb", "after-commit:2"),
        ("mariadb", "before-recommit"),
    ],
)
def test_exactly_once_with_a_slot_killed_around_its_commit(
    spark: Any, request: pytest.FixtureRequest, crash_slots: Any, tmp_path: Path, database: str, point: str
) -> None:
    """Plain INSERTs into a table without a key: a row that is written twice shows."""
    table = table_on(database, request, tmp_path).create()
    crashed = crash_slots(f"{point}@slot")
    env = checkpointed(2, 150, directory=tmp_path / "checkpoints", restarts=5)
    stream = pairs(env)
    if "recommit" in point:
        stream = stream.map(FailOnce(), PAIR)
    stream.rebalance().add_sink(table.exactly_once()).uid("table")
    env.execute("around the commit")
    assert crashed.exists(), "nobody died"
    assert table.rows() == EXPECTED


def test_a_server_killed_in_the_middle_and_a_resume_at_another_parallelism(
    spark: Any, own_postgres: PostgresServer, tmp_path: Path
) -> None:
    once, again = PostgresTable(own_postgres).create(), PostgresTable(own_postgres)
    again.create("n BIGINT PRIMARY KEY, text VARCHAR(40)")

    def job(parallelism: int, **settings: Any) -> Any:
        env = checkpointed(parallelism, 150, directory=tmp_path / "checkpoints", restarts=5, **settings)
        stream = pairs(env, 300)
        stream.rebalance().add_sink(once.exactly_once()).uid("once")
        stream.rebalance().add_sink(again.at_least_once(again.upsert)).uid("again")
        return env

    client = job(2).execute_async("killed server")
    wait_until(once.rows, "rows are committed", DEADLINE_S)
    own_postgres.kill()
    own_postgres.restart()
    before = len(once.rows())
    wait_until(lambda: len(once.rows()) > before, "the job goes on", DEADLINE_S)
    folder = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(DEADLINE_S)
    job(1, **{"execution.state-recovery.path": folder}).execute("killed server")
    assert once.rows() == again.rows() == EXPECTED


def slot_commands() -> list[str]:
    """The command lines of all slots."""
    commands = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
    return [command for command in commands if "rekindle.runtime.slot" in command]


def test_errors_are_one_sentence_and_passwords_are_nowhere(
    spark: Any, postgres: PostgresServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = PostgresTable(postgres).create("n BIGINT, text VARCHAR(4)")
    env = checkpointed(2, 150, directory=tmp_path / "checkpoints", restarts=0)
    pairs(env).add_sink(table.exactly_once()).uid("table")
    plan = env.get_execution_plan()
    client = env.execute_async("too narrow")
    commands = wait_until(slot_commands, "the slots run", DEADLINE_S)
    with pytest.raises(JobExecutionError) as caught:
        client.get_job_execution_result().result(DEADLINE_S)
    told = str(caught.value)
    # Two subtasks write: either may be the first one with a value of five characters.
    assert re.search(r"value 'v1\d{3}' does not fit column 'text' \(character varying\)", told), told
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    out, err = capfd.readouterr()
    for text in (plan, told, out, err, *commands):
        assert postgres.password not in text
    assert stored
    assert postgres.password.encode() not in stored
