"""The whole job, five branches and exactly-once files, in this process: clean, killed, rescaled, on both backends."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import cycle

import pytest

from examples.orders.faults import BRANCHES, Fault, SimulatedError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.state.rocksdb.row_cache import RowCache
from tests.examples.orders.order_samples import LIVELY, assert_as_expected, job_in_process, shop, verdicts

BACKENDS = ("hashmap", "rocksdb")
IN_TURN = [("hashmap",), ("rocksdb",), BACKENDS]


@pytest.fixture(autouse=True)
def few_rows_in_memory(monkeypatch):
    """RocksDB's cache holds a handful of rows, so that most state of these small jobs is on the disk."""
    monkeypatch.setattr(RowCache, "_most_young_rows", lambda self: 8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("seed", "parallelism"), [(7, 1), (8, 2), (9, 3)])
def test_undisturbed(tmp_path, seed, parallelism, backend):
    feed, settings = replace(LIVELY, seed=seed), shop(tmp_path, parallelism, backend=backend)
    job_in_process(settings, feed).run()
    assert_as_expected(settings, feed, partial=parallelism)


@pytest.mark.parametrize("backends", IN_TURN, ids=" and ".join)
@pytest.mark.parametrize("seed", [0, 1])
def test_killed_again_and_again(tmp_path, seed, backends):
    """After any number of epochs, with checkpoints here and there, some of them aborted."""
    feed, settings, chance = replace(LIVELY, seed=seed), shop(tmp_path), random.Random(seed)
    checkpoint, backend = None, cycle(backends)
    for _ in range(6):
        job = job_in_process(replace(settings, backend=next(backend)), feed, checkpoint, records_per_epoch=40)
        for _ in range(chance.randrange(1, 4)):
            if chance.random() < 0.6:
                checkpoint = job.checkpoint()
            else:
                job.epoch()
        job.epoch()
        job.kill()
    job_in_process(replace(settings, backend=next(backend)), feed, checkpoint).run()
    assert_as_expected(settings, feed, partial=2)


@pytest.mark.parametrize("backends", IN_TURN, ids=" and ".join)
@pytest.mark.parametrize(("parallelisms", "savepoint"), [((2, 3, 1), False), ((1, 4, 2), True)])
def test_rescaled(tmp_path, parallelisms, savepoint, backends):
    feed, checkpoint, backend = LIVELY, None, cycle(backends)
    for parallelism in parallelisms:
        settings = shop(tmp_path, parallelism, backend=next(backend))
        job = job_in_process(settings, feed, checkpoint, records_per_epoch=50)
        job.checkpoint()
        job.epoch()
        checkpoint = job.checkpoint(savepoint=savepoint)
        if not savepoint:
            job.epoch()  # lost
        job.kill()
    job_in_process(shop(tmp_path, parallelisms[-1], backend=next(backend)), feed, checkpoint).run()
    assert_as_expected(shop(tmp_path), feed, partial=max(parallelisms))


@pytest.mark.parametrize("backend", BACKENDS)
def test_orders_that_are_forgotten_while_the_job_runs(tmp_path, backend):
    """State is bounded, and it shows in no result: dedup, tracking and stock forget within minutes of event time."""
    short = {"duplicate_horizon_s": 900, "order_retention_s": 60, "order_lifetime_s": 3600}
    settings = shop(tmp_path, backend=backend, **short)
    checkpoint = None
    for _ in range(3):
        job = job_in_process(settings, LIVELY, checkpoint)
        job.checkpoint()
        job.epoch()
        checkpoint = job.checkpoint()
        job.kill()
    job_in_process(settings, LIVELY, checkpoint).run()
    assert_as_expected(settings, LIVELY, partial=2)


def test_the_comparison_finds_what_is_missing_and_what_is_twice(tmp_path):
    settings = shop(tmp_path)
    job_in_process(settings, LIVELY).run()
    stock = tmp_path / "output" / "stock"
    victim = min(stock.iterdir())
    lines = victim.read_text().splitlines(keepends=True)
    victim.write_text("".join([*lines[1:], lines[2]]))
    found = {verdict.stream: verdict for verdict in verdicts(settings, LIVELY, partial=2)}
    assert (found["stock"].missing, found["stock"].unexpected, found["stock"].equal) == (1, 1, False)
    assert all(verdict.equal for name, verdict in found.items() if name != "stock")
    assert "1 missing, 1 not expected" in str(found["stock"])
    *_, batches = verdicts(replace(settings, batch_size=31), LIVELY, partial=2)
    assert "batches are smaller than 31" in batches.complaint


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("branch", BRANCHES)
def test_a_function_fails_before_each_branch_and_changes_nothing(tmp_path, branch, backend):
    """The failing function of the text, at its 100th record of the first attempt; the state is the job's, not its."""
    settings, faults = shop(tmp_path, backend=backend), (Fault(branch, 100),)
    job = job_in_process(settings, LIVELY, faults=faults)
    completed = [job.checkpoint()]
    with pytest.raises(OperatorFailure, match=f"fault before {branch}") as caught:
        completed.extend(job.checkpoint() for _ in range(1000))
    assert isinstance(caught.value.__cause__, SimulatedError)
    job.kill()
    job_in_process(settings, LIVELY, completed[-1]).run()
    assert_as_expected(settings, LIVELY, partial=2)


def test_faults_by_name():
    assert Fault.parse("stock:7:2") == Fault("stock", 7, 2)
    assert Fault.parse("stock:7:2:3").checkpoints == 3
    for wrong in ("shipping:7", "stock", "stock:7:2:1:1", "stock:x"):
        with pytest.raises(ValueError):
            Fault.parse(wrong)
