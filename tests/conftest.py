"""Fixtures and hooks of all tests: one Spark session, the order of the tests, and a check for leftover processes."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.configuration
import psutil
import pytest

from tests.support.slot_processes import RUN_VARIABLE, slots_of_run

REPOSITORY = Path(__file__).resolve().parents[1]
LEFTOVER_DEADLINE_S = 30.0
# Most JVMs of the tests run for seconds: the optimizing compiler would take half of that time without a benefit.
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DROPPINGS = ("spark-warehouse", "metastore_db", "derby.log", "artifacts", ".hypothesis")

hypothesis.configuration.set_hypothesis_home_dir(REPOSITORY / ".pytest_cache" / "hypothesis")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell that started us in the background has switched Ctrl-C off; programs that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Property tests count examples, not seconds: on a busy machine they are slow, never red.
PROPERTY_TIMEOUT_S = 600
# The first test that needs a server may have to wait for its download.
SERVER_FIXTURES = {"kafka", "topic", "own_broker", "hbase", "table", "own_hbase", "mortal", "postgres", "own_postgres"}
SERVER_FIXTURES |= {"mariadb", "own_mariadb"}
SERVER_TIMEOUT_S = 600
INTEGRATION_FOLDERS = ("integration", "recovery", "servers")
UNHURRIED = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], database=None, print_blob=True
)
# The same examples in every run, so that a failure is reproducible. `make explore` tries others.
hypothesis.settings.register_profile("rekindle", UNHURRIED, derandomize=True)
hypothesis.settings.register_profile("explore", UNHURRIED)
hypothesis.settings.load_profile("rekindle")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--backend=rocksdb` runs the tests with RocksDB where they choose no backend, `--long` the long proofs."""
    parser.addoption("--backend", choices=("hashmap", "rocksdb"), default="hashmap")
    parser.addoption("--long", action="store_true", help="run the long proofs too (make long)")


def pytest_configure(config: pytest.Config) -> None:
    """Make the chosen backend the default of every job of this process."""
    from rekindle.config import STATE_BACKEND

    object.__setattr__(STATE_BACKEND, "default", config.getoption("--backend"))


@pytest.hookimpl(tryfirst=True)  # before `-m` selects tests by their marks
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that need Spark or processes."""
    if _needs_spark(item) or _needs_server(item):
        item.add_marker(pytest.mark.integration)


@pytest.hookimpl(trylast=True)  # after Hypothesis has marked its tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run tests that need Spark or processes last: errors in plain code show within seconds.

    Of these, the tests that may take longest come first: else one worker has such a test left at the end.
    """
    if not config.getoption("--long"):
        longs = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=longs)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    for item in items:
        if item.get_closest_marker("hypothesis") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PROPERTY_TIMEOUT_S))
        if _needs_server(item) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SERVER_TIMEOUT_S))
    items.sort(key=_rank)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say at the very start which tests will not run because there is no browser."""
    from tests.support.browser import REASON, chromium_path, must_be_there

    if chromium_path() is not None or must_be_there():
        return None
    return f"The tests of the page (tests/integration/page) will be skipped: {REASON}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say at the very end which tests were not run because there is no browser."""
    from tests.support.browser import NO_BROWSER, REASON

    skipped = [each for each in terminalreporter.stats.get("skipped", []) if NO_BROWSER in str(each.longrepr)]
    if skipped:
        terminalreporter.section("not run", sep="=", yellow=True)
        for each in sorted(report.nodeid for report in skipped):
            terminalreporter.write_line(each)
        terminalreporter.write_line(f"{len(skipped)} tests of the page: {REASON}")


def _needs_spark(item: pytest.Item) -> bool:
    return _is_integration_file(item.path) or "spark" in getattr(item, "fixturenames", ())


@functools.cache
def _is_integration_file(path: Path) -> bool:
    return any(REPOSITORY / "tests" / folder in path.parents for folder in INTEGRATION_FOLDERS)


def _needs_server(item: pytest.Item) -> bool:
    return not SERVER_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _rank(item: pytest.Item) -> tuple[int, float]:
    if not item.get_closest_marker("integration"):
        return 0, 0
    timeout = item.get_closest_marker("timeout")
    return 1, -timeout.args[0] if timeout is not None else 0


@pytest.fixture(scope="session", autouse=True)
def in_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run tests in a temporary folder and with a cache folder of their own, so that the clone stays unchanged."""
    before = {name for name in DROPPINGS if (REPOSITORY / name).exists()}
    cache = tmp_path_factory.mktemp("cache")
    _link_class_archives(cache / "rekindle")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("cwd"))
        patch.setenv("XDG_CACHE_HOME", str(cache))
        yield
    dropped = {name for name in DROPPINGS if (REPOSITORY / name).exists()} - before
    assert not dropped, f"The tests wrote into the clone: {sorted(dropped)}; write into tmp_path."


def _link_class_archives(folder: Path) -> None:
    """Let Spark find the archive of its classes that `make test` has made: it saves a third of each JVM's start."""
    folder.mkdir(mode=0o700)
    for archive in (REPOSITORY / ".cache" / "rekindle").glob("*.jsa"):
        try:
            os.link(archive, folder / archive.name)
        except OSError:  # on another file system
            shutil.copy2(archive, folder)


@pytest.fixture(scope="session", autouse=True)
def short_lived_jvms(in_temporary_folder: None) -> Iterator[None]:
    """Set options for the JVMs of Spark that tests start: drivers, masters, workers and executors."""
    from rekindle.spark.java import ensure_java
    from rekindle.spark.jvm_options import archive_options

    # Rekindle gives the archive only to its own session's JVM.
    options = " ".join([SHORT_LIVED_JVM, *archive_options(ensure_java(os.environ), os.environ)])
    executors = shlex.quote(f"-Dspark.executor.defaultJavaOptions={options}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", f"{options} -Dspark.ui.enabled=false {executors}")
        patch.setenv("SPARK_DAEMON_JAVA_OPTS", options)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_slot_left() -> Iterator[None]:
    """Check that no slot of this run is alive after the last test: slots end with their driver, executor or job."""
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
    """One local[2] session, made by Rekindle's own code; jobs use it as the active session."""
    from rekindle.common import Configuration
    from rekindle.spark.session import create_session, stop_session

    configuration = Configuration()
    configuration.set_string("rekindle.master", "local[2]")
    configuration.set_string("rekindle.spark.conf.spark.ui.enabled", "true")  # tests read its page
    session = create_session(configuration)
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def run_id(no_slot_left: None) -> str:
    """The id of this run in the environment of its processes."""
    return os.environ[RUN_VARIABLE]


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """An S3-compatible server on this machine."""
    from tests.support.s3_server import s3_server

    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, in_temporary_folder: None
) -> Iterator[Any]:
    """The run's Kafka broker, which its workers share; a test that stops or kills a broker takes `own_broker`."""
    with _shared("kafka", request, tmp_path_factory) as broker:
        yield broker


@pytest.fixture(scope="session")
def hbase(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, in_temporary_folder: None
) -> Iterator[Any]:
    """The run's HBase, which its workers share; a test that stops or kills one takes `own_hbase`."""
    with _shared("hbase", request, tmp_path_factory) as server:
        yield server


@contextlib.contextmanager
def _shared(name: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The run's server of this name; it starts with the first test that asks for it."""
    from tools.servers.server_error import ServerError
    from tools.servers.shared import shared_server

    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent  # each worker of pytest-xdist has a folder of its own in that of the run
    with contextlib.ExitStack() as use:
        try:
            server = use.enter_context(shared_server(name, folder))
        except ServerError as error:
            pytest.fail(str(error), pytrace=False)
        yield server


@pytest.fixture
def topic(kafka: Any, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes topics on the run's broker, whose names no other test has: `topic(partitions=3, retention_ms=1000)`.

    They keep records of any age: tests write some with timestamps of 1970, which the broker would remove at any moment.
    """
    test = re.sub(r"[^\w.-]", "-", request.node.name, flags=re.ASCII)[:100]

    def create(partitions: int = 1, **config: Any) -> str:
        settings = {"retention_ms": -1, **config}
        return str(kafka.create_topic(f"{test}-{uuid.uuid4().hex[:8]}", partitions, **settings))

    return create


@pytest.fixture
def own_broker() -> Iterator[Callable[..., Any]]:
    """Starts brokers of the test's own, with the options of `KafkaBroker`, and stops them after the test."""
    from tools.servers.kafka import KafkaBroker

    with _starting(KafkaBroker) as start:
        yield start


@pytest.fixture
def table(hbase: Any, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes tables in the run's HBase, whose names no other test has: `table("f", "g", max_versions=1)`."""
    test = re.sub(r"[^\w.-]", "-", request.node.name, flags=re.ASCII)[:100]

    def create(*families: str, **options: Any) -> str:
        return str(hbase.create_table(f"{test}-{uuid.uuid4().hex[:8]}", *families, **options))

    return create


@pytest.fixture
def own_hbase() -> Iterator[Callable[..., Any]]:
    """Starts an HBase of the test's own, with the options of `HBaseServer`, and ends it after the test."""
    from tools.servers.hbase import HBaseServer

    with _starting(HBaseServer) as start:
        yield start


@pytest.fixture(scope="session")
def postgres(in_temporary_folder: None) -> Iterator[Any]:
    """The worker's PostgreSQL server; a test that stops or kills one takes `own_postgres`."""
    from tools.servers.postgres import PostgresServer

    with _starting(PostgresServer) as start:
        yield start()


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    """A PostgreSQL server of the test's own, which it may stop, kill and restart."""
    from tools.servers.postgres import PostgresServer

    with _starting(PostgresServer) as start:
        yield start()


@pytest.fixture(scope="session")
def mariadb(in_temporary_folder: None) -> Iterator[Any]:
    """The worker's MariaDB server; a test that stops or kills one takes `own_mariadb`."""
    from tools.servers.mariadb import MariaDbServer

    with _starting(MariaDbServer) as start:
        yield start()


@pytest.fixture
def own_mariadb() -> Iterator[Any]:
    """A MariaDB server of the test's own, which it may stop, kill and restart."""
    from tools.servers.mariadb import MariaDbServer

    with _starting(MariaDbServer) as start:
        yield start()


@contextlib.contextmanager
def _starting(kind: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function that starts servers of a kind, which end with the block; one that cannot be fetched fails the test."""
    from tools.servers.server_error import ServerError

    with contextlib.ExitStack() as servers:

        def start(**options: Any) -> Any:
            try:
                return servers.enter_context(kind(**options))
            except ServerError as error:
                pytest.fail(str(error), pytrace=False)

        yield start
