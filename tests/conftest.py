"""What all tests share: one Spark session, the order they run in, and that they leave nothing behind."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.configuration
import psutil
import pytest

from tests.slot_processes import RUN_VARIABLE, slots_of_run

REPOSITORY = Path(__file__).resolve().parents[1]
LEFTOVER_DEADLINE_S = 30.0
# Most JVMs of the tests live for seconds: the optimizing compiler would take half of their time and give nothing back.
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DROPPINGS = ("spark-warehouse", "metastore_db", "derby.log", "artifacts", ".hypothesis")

hypothesis.configuration.set_hypothesis_home_dir(REPOSITORY / ".pytest_cache" / "hypothesis")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell that started us in the background has switched Ctrl-C off; programs that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Property tests count examples, not seconds: on a busy machine they are slow, never red.
PROPERTY_TIMEOUT_S = 600
UNHURRIED = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], database=None, print_blob=True
)
# The same examples in every run: what fails, fails for everybody. `make explore` looks for others.
hypothesis.settings.register_profile("rekindle", UNHURRIED, derandomize=True)
hypothesis.settings.register_profile("explore", UNHURRIED)
hypothesis.settings.load_profile("rekindle")


@pytest.hookimpl(trylast=True)  # after Hypothesis has marked its tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs Spark or processes, and runs it last: a mistake in plain code shows within seconds."""
    for item in items:
        if _needs_spark(item):
            item.add_marker(pytest.mark.integration)
        if item.get_closest_marker("hypothesis") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PROPERTY_TIMEOUT_S))
    items.sort(key=_rank)


def _needs_spark(item: pytest.Item) -> bool:
    in_folder = (REPOSITORY / "tests" / "integration") in item.path.parents
    return in_folder or "spark" in getattr(item, "fixturenames", ())


def _rank(item: pytest.Item) -> int:
    if item.get_closest_marker("cluster"):
        return 2
    return 1 if item.get_closest_marker("integration") else 0


@pytest.fixture(scope="session", autouse=True)
def in_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests run in a temporary folder and with a cache folder of their own; the clone stays as it was."""
    before = {name for name in DROPPINGS if (REPOSITORY / name).exists()}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("cwd"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
    dropped = {name for name in DROPPINGS if (REPOSITORY / name).exists()} - before
    assert not dropped, f"The tests wrote into the clone: {sorted(dropped)}; write into tmp_path."


@pytest.fixture(scope="session", autouse=True)
def short_lived_jvms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every JVM that Spark starts, drivers, workers and executors, reads these options from its folder of settings."""
    folder = tmp_path_factory.mktemp("spark-conf")
    (folder / "java-opts").write_text(f"{SHORT_LIVED_JVM}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_slot_left() -> Iterator[None]:
    """A slot dies with its driver, its executor or its job: after the last test none of this run's may be alive."""
    run = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RUN_VARIABLE, run)
        yield
    left = _slots_after_deadline(run)
    assert not left, "These slots outlived the tests: " + "; ".join(left)


def _slots_after_deadline(run: str) -> list[str]:
    deadline = time.monotonic() + LEFTOVER_DEADLINE_S
    while True:
        alive = slots_of_run(run)
        if not alive or time.monotonic() > deadline:
            return [f"{process.pid} {' '.join(process.info['cmdline'])}" for process in alive]
        psutil.wait_procs(alive, timeout=0.2)


@pytest.fixture(scope="session")
def spark(no_slot_left: None, in_temporary_folder: None, short_lived_jvms: None) -> Iterator[Any]:
    """One local[2] session, made as Rekindle makes its own; jobs find it as the active session."""
    from rekindle.common import Configuration
    from rekindle.spark.session import create_session, stop_session

    configuration = Configuration()
    configuration.set_string("rekindle.master", "local[2]")
    session = create_session(configuration)
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def run_id(no_slot_left: None) -> str:
    """The id that this run's processes carry in their environment."""
    return os.environ[RUN_VARIABLE]


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """An S3-compatible server on this machine."""
    from tests.s3_server import s3_server

    with s3_server() as server:
        yield server
