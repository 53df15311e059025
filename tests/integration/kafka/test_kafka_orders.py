"""The order system from Kafka to Kafka: equal to plain Python, also after a slot was killed while orders came."""

from __future__ import annotations

import signal
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.orders.job import build, environment
from examples.orders.kafka_ends import KEYS, events_per_partition
from examples.orders.kafka_topics import committed_rows, create_topics
from examples.orders.model import expected
from examples.orders.produce import OrderProducer
from examples.orders.results import compare_rows
from examples.orders.settings import Settings, millis
from rekindle.common import JobClient
from tests.support.order_feed import FEED
from tests.support.slot_processes import slots_of
from tests.support.waiting import wait_until
from tools.servers.kafka_access import QUIET, KafkaAccess

pytestmark = pytest.mark.timeout(300)
DEADLINE_S = 150.0


@pytest.fixture
def settings(kafka: KafkaAccess, tmp_path: Path) -> Settings:
    """A job with topics and a consumer group of its own."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    made = Settings(
        directory=str(tmp_path),
        job_name=name,
        source="kafka",
        sink="kafka",
        bootstrap=kafka.bootstrap_servers,
        source_topic=name,
        sink_topics=f"{name}-",
        checkpoint_interval_s=0.5,
        checkpoint_pause_s=0.05,
        restart_delay_s=0.05,
        initial_stock=60,
    )
    create_topics(client_of(made), made, FEED)
    return made


@pytest.fixture
def producer(settings: Settings) -> Iterator[OrderProducer]:
    """Sends the orders while the test runs; the last tenth comes slowly until `hurry`."""
    total = sum(events_per_partition(FEED, millis(settings.out_of_orderness_s)).values())
    made = OrderProducer(client_of(settings), settings, FEED).start(total)
    yield made
    made.close()


def client_of(settings: Settings) -> dict[str, Any]:
    return {"bootstrap.servers": settings.bootstrap} | QUIET


def start(settings: Settings) -> JobClient:
    env = environment(settings, **{"rekindle.progress": "off"})
    build(env, settings, FEED)
    return env.execute_async(settings.job_name)


@pytest.mark.long
def test_a_slot_is_killed_and_every_committed_row_is_the_models(
    spark: Any, settings: Settings, producer: OrderProducer
) -> None:
    client = start(settings)
    wait_until(lambda: client.get_checkpoint_statistics().counts.completed >= 2, "two checkpoints", DEADLINE_S)
    slots_of(settings.job_name)[1].send_signal(signal.SIGKILL)
    wait_until(lambda: client.get_checkpoint_statistics().counts.restored == 1, "the restart", DEADLINE_S)
    producer.hurry()
    client.get_job_execution_result().result(DEADLINE_S)

    model = expected(settings, FEED)
    rows = {stream: list(committed_rows(client_of(settings), settings, stream)) for stream in model}
    verdicts = compare_rows(rows.__getitem__, model, settings.batch_size, settings.parallelism)
    assert all(verdict.equal for verdict in verdicts), "; ".join(map(str, verdicts))
    for stream in ("statuses", "stock"):
        assert by_key(rows[stream], stream) == by_key(model[stream], stream), "each key's rows are in order"


def by_key(rows: list[dict[str, Any]], stream: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row[KEYS[stream]]].append(row)
    return dict(found)
