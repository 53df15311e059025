"""Two drivers run one job: the older one ends, also if it makes no checkpoints and so publishes nothing (I14)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rekindle.common import Configuration, JobStatus, WatermarkStrategy
from rekindle.coordinator.job import JobMaster
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.errors import OwnershipLostError
from tests.support.local_cluster import launch_locally
from tests.support.waiting import becomes_true

pytestmark = pytest.mark.timeout(120)
DEADLINE_S = 30.0


def running_job(directory: Path, **more: str) -> JobMaster:
    """An endless job without checkpoints, or with an interval of a day; it looks at its claim ten times a second."""
    settings = {
        "execution.checkpointing.dir": os.fspath(directory),
        "heartbeat.interval": "100 ms",
        "restart-strategy.type": "fixed-delay",
        "rekindle.progress": "off",
        "rekindle.history.enabled": "false",
    }
    configuration = Configuration.from_dict({**settings, **{key.replace("_", "."): each for key, each in more.items()}})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    source = DataGeneratorSource(lambda n: n, 10**9, RateLimiterStrategy.per_second(20))
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).map(lambda n: n, int)._collect()
    job = launch_locally(env._program("counted"))
    assert becomes_true(lambda: job.status() is JobStatus.RUNNING, DEADLINE_S)
    return job


@pytest.fixture
def short_directory() -> Iterator[Path]:
    """A directory with a path that is short enough for the unix sockets of slots."""
    with tempfile.TemporaryDirectory(prefix="rk-test-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@pytest.mark.parametrize("more", [{}, {"execution_checkpointing_interval": "1 d"}], ids=["no checkpoints", "one a day"])
def test_a_driver_without_checkpoints_ends_when_another_takes_over(
    tmp_path: Path, short_directory: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(short_directory))  # for the directories of slots
    older = running_job(tmp_path, **more)
    newer = running_job(tmp_path, **more)
    try:
        with pytest.raises(OwnershipLostError, match=r"now belong to the driver .* so this driver stops"):
            older.result().result(DEADLINE_S)
        assert newer.status() is JobStatus.RUNNING
    finally:
        for job in (older, newer):
            job.cancel().result(DEADLINE_S)
    assert newer.status() is JobStatus.CANCELED
