"""One program on each form of a Spark cluster, with classes and functions from every place that a program may use."""

from __future__ import annotations

import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.support.running_program import PROGRAMS, RunningProgram, seconds_until_gone
from tests.support.slot_processes import slots_of_run
from tests.support.standalone_cluster import StandaloneCluster, standalone_cluster

pytestmark = pytest.mark.timeout(300)

#: The sums that the program's customers have spent in the end, with a fifth of taxes.
EXPECTED = {
    "ann": (["nail", "saw"], (100 * 5 + 3 * 1200) * 6 // 5),
    "bob": (["nail", "saw"], (2 * 1200 + 40 * 5) * 6 // 5),
    "cyd": (["hammer"], 2 * 900 * 6 // 5),
}


def run_orders(master: str, *settings: str) -> None:
    """Run the program, compare its last result per customer, and check that no process of it stays."""
    installed = files_of_pyspark()
    taxes = os.fspath(PROGRAMS / "elsewhere" / "taxes.py")
    with RunningProgram("orders/spending.py", master, taxes, *settings) as program:
        assert program.wait() == 0, "\n".join(program.errors)
        errors = [line for line in program.errors if "waits for Spark to start" not in line]  # on a busy machine
        assert without_last_words_of_spark(errors) == []
        last: dict[str, dict[str, tuple[list[str], int]]] = {"typed": {}, "untyped": {}}
        for line in program.out:
            kind, customer, items, cents = json.loads(line)
            # A customer's results come in order, and the last one contains every order.
            assert len(items) > len(last[kind].get(customer, ([], 0))[0])
            last[kind][customer] = sorted(items), cents
        assert last == {"typed": EXPECTED, "untyped": EXPECTED}
        seconds_until_gone(program.processes(), time.monotonic(), deadline_s=5.0)
        assert os.listdir(program.temporary) == []
    assert files_of_pyspark() == installed, "something was written into the installed pyspark"


def without_last_words_of_spark(lines: list[str]) -> list[str]:
    """Without the stack that Spark's driver prints when an executor's message meets a pool that has just ended."""
    rejected = "java.util.concurrent.RejectedExecutionException: "
    if not any(line.startswith(rejected) for line in lines):
        return lines
    return [line for line in lines if not line.startswith((rejected, "\tat "))]


def files_of_pyspark() -> set[str]:
    home = Path(pyspark.__file__).parent
    return {name for name in map(os.fspath, home.rglob("*")) if "__pycache__" not in name}


@pytest.mark.long
def test_local() -> None:
    run_orders("local[2]")


@pytest.mark.cluster
@pytest.mark.long
def test_local_cluster() -> None:
    run_orders("local-cluster[2,1,1024]")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandaloneCluster]:
    with tempfile.TemporaryDirectory(prefix="rk-test-") as temporary:
        # Here the workers' executors, and so the slots, make their directories.
        monkeypatch.setenv("TMPDIR", temporary)
        with standalone_cluster(workers=2, cores=1, memory="1g") as running:
            yield running
        assert not running.directory.exists()
        assert os.listdir(temporary) == []


@pytest.mark.cluster
def test_standalone_cluster(cluster: StandaloneCluster, run_id: str) -> None:
    # Slots that a fixture of another module may still have belong to no program of this test.
    others = set(slots_of_run(run_id))
    run_orders(cluster.master)
    # The slots were children of the workers' executors, not of the program.
    started = [slot for slot in slots_of_run(run_id) if slot not in others]
    seconds_until_gone(started, time.monotonic(), deadline_s=5.0)


@pytest.mark.cluster
@pytest.mark.long
def test_a_standalone_cluster_with_a_secret(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text(f"{uuid.uuid4().hex}\n")
    with standalone_cluster(workers=2, cores=1, memory="1g", secret=secret.read_text().strip()) as running:
        run_orders(running.master, f"rekindle.spark.authenticate.secret-file={secret}")
