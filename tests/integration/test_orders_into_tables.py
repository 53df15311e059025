"""The order system with tables as its sinks: equal to plain Python, also after a slot was killed while orders came."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from examples.orders import hbase_ends, postgres_ends
from examples.orders.job import build, environment
from examples.orders.model import expected
from examples.orders.results import compare_rows
from examples.orders.settings import Settings
from tests.support.order_feed import FEED
from tests.support.slot_processes import slots_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(300)
DEADLINE_S = 150.0


def settings_of(folder: Path, **more: Any) -> Settings:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    times: dict[str, Any] = {"checkpoint_interval_s": 0.5, "checkpoint_pause_s": 0.05, "restart_delay_s": 0.05}
    return Settings(directory=str(folder), job_name=name, table=name, initial_stock=60, **times, **more)


def run_with_a_killed_slot(settings: Settings) -> None:
    env = environment(settings, **{"rekindle.progress": "off"})
    build(env, settings, FEED)
    client = env.execute_async(settings.job_name)
    wait_until(lambda: client.get_checkpoint_statistics().counts.completed >= 2, "two checkpoints", DEADLINE_S)
    slots_of(settings.job_name)[1].send_signal(signal.SIGKILL)
    client.get_job_execution_result().result(DEADLINE_S)
    assert client.get_checkpoint_statistics().counts.restored == 1


def assert_equal_to_the_model(
    settings: Settings, rows_of: Callable[[Settings, str], Iterable[Any]], batch_size: int
) -> None:
    model = expected(settings, FEED)
    verdicts = compare_rows(lambda stream: rows_of(settings, stream), model, batch_size, settings.parallelism)
    assert all(verdict.equal for verdict in verdicts), "; ".join(map(str, verdicts))
    assert sum(verdict.rows for verdict in verdicts) > 1000


def test_results_in_hbase_are_the_models(spark: Any, hbase: Any, tmp_path: Path) -> None:
    settings = settings_of(tmp_path, sink="hbase", thrift=hbase.address)
    hbase_ends.create_table(settings)
    run_with_a_killed_slot(settings)
    assert_equal_to_the_model(settings, hbase_ends.hbase_rows, batch_size=1)


@pytest.mark.long
def test_results_in_postgresql_are_the_models(
    spark: Any, postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(postgres_ends.PASSWORD, postgres.password)
    settings = settings_of(tmp_path, sink="postgres", database=postgres.jdbc_url, database_user=postgres.user)
    postgres_ends.create_table(settings)
    run_with_a_killed_slot(settings)
    assert_equal_to_the_model(settings, postgres_ends.postgres_rows, settings.batch_size)
