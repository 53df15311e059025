"""A broker that is gone for half a minute while a job on Spark reads from it and writes to it exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Types, WatermarkStrategy
from rekindle.common.restart_strategy import RestartStrategies
from rekindle.datastream import StreamExecutionEnvironment
from tests.integration.kafka.kafka_reading import values
from tests.integration.kafka.sink_jobs import builder
from tests.support.kafka_topics import fill, source_of
from tests.support.waiting import wait_until
from tools.servers.kafka import KafkaBroker

OUTAGE_S = 30.0
NUMBERS = 300


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_job_outlasts_a_broker_that_is_gone_for_half_a_minute(
    spark: Any, own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    broker = own_broker()
    numbers, squares = broker.create_topic("numbers", 2), broker.create_topic("squares", 2)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.enable_checkpointing(500)
    env.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{tmp_path}")
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(100, 500))
    source = source_of(broker, numbers).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(int, Types.LONG())
    stream.key_by(lambda n: n % 7, Types.LONG()).map(lambda n: n * n, Types.LONG()).sink_to(
        builder(broker.bootstrap_servers, squares).build()
    )
    job = env.execute_async("outage")
    try:
        fill(broker, numbers, 0, range(100))
        wait_until(lambda: len(values(broker, squares)) == 100, "the squares before the outage", 120)
        fill(broker, numbers, 1, range(100, 200))  # under way when the broker dies
        broker.kill()
        time.sleep(OUTAGE_S)  # the outage itself
        broker.restart()
        fill(broker, numbers, 0, range(200, NUMBERS))
        wait_until(lambda: len(values(broker, squares)) >= NUMBERS, "the squares after the outage", 180)
    finally:
        job.cancel().result()

    assert values(broker, squares) == [n * n for n in range(NUMBERS)]
