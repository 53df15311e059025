"""Two-phase sinks on Spark: each record visible exactly once, whatever fails between pre-commit and commit (I18)."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from pathlib import Path

import pytest

from rekindle.common import JobStatus, WatermarkStrategy
from rekindle.datastream import MapFunction, TwoPhaseCommitSinkFunction
from rekindle.datastream.connectors import CommittableFile, Committer, CommittingSinkWriter, Sink, SupportsCommitter
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.errors import CheckpointNotFoundError, JobExecutionError
from tests.support.environments import checkpointed
from tests.support.waiting import wait_until

RECORDS, PER_SECOND = 4000, 2000
DEADLINE_S = 60.0


def numbers(env, records: int = RECORDS):
    source = DataGeneratorSource(lambda n: n, records, RateLimiterStrategy.per_second(PER_SECOND))
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")


def visible(folder: Path) -> list[int]:
    return sorted(record for path in folder.glob("*.json") for record in json.loads(path.read_text()))


class Files(Sink, SupportsCommitter):
    """Writes into the slot's private directory; the files travel in the checkpoint, and are copied at the commit."""

    def __init__(self, folder: Path, failures: int = 0, delays: int = 0):
        self.folder = folder
        self.failures = failures
        self.delays = delays

    def create_writer(self, context):
        return FilesWriter(context)

    def create_committer(self, context):
        return FilesCommitter(self, context)


class FilesWriter(CommittingSinkWriter):
    def __init__(self, context):
        self.context = context
        self.records = []
        self.number = 0

    def write(self, element, context):
        self.records.append(element)

    def flush(self, end_of_input):
        pass

    def prepare_commit(self):
        if not self.records:
            return []
        self.number += 1
        path = Path(self.context.directory, str(self.number))
        path.write_text(json.dumps(self.records))
        self.records = []
        return [CommittableFile(str(path), f"{self.context.staging_prefix()}-{self.number}.json")]


class FilesCommitter(Committer):
    def __init__(self, sink, context):
        self.sink = sink
        self.context = context
        self.delays = sink.delays

    def commit(self, requests):
        if self.context.get_attempt_number() < self.sink.failures:
            (self.sink.folder / f"failed-{self.context.staging_prefix()}").touch()
            raise OSError("between pre-commit and commit")
        for request in requests:
            if self.delays:
                self.delays -= 1
                request.retry_later()
                continue
            file = request.get_committable()
            shutil.copyfile(file.path, self.sink.folder / f"{file.name}.part")
            (self.sink.folder / f"{file.name}.part").rename(self.sink.folder / file.name)


def test_a_commit_that_fails_is_made_after_the_restart_by_another_process(spark, tmp_path):
    """I18: slots die twice before any commit; the checkpoint restores the files of the dead slots."""
    folder = tmp_path / "output"
    folder.mkdir()
    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=3)
    numbers(env).rebalance().sink_to(Files(folder, failures=2)).uid("files")
    env.execute("failing commits")
    assert visible(folder) == list(range(RECORDS))
    assert {path.name.split("-")[3] for path in folder.glob("failed-*")} == {"1", "2"}, "each attempt has its number"


class FailOnce(MapFunction):
    def open(self, runtime_context):
        self.left = 1000 if runtime_context.get_attempt_number() == 0 else -1

    def map(self, value):
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("on purpose")
        return value


class Transactions(TwoPhaseCommitSinkFunction):
    """A transaction is the name of a file beside the output."""

    def __init__(self, folder: Path):
        super().__init__(str)
        self.folder = folder

    def begin_transaction(self):
        self.records = []
        return uuid.uuid4().hex

    def invoke(self, transaction, value, context):
        self.records.append(value)

    def pre_commit(self, transaction):
        (self.folder / f"{transaction}.open").write_text(json.dumps(self.records))

    def commit(self, transaction):
        staged = self.folder / f"{transaction}.open"
        if staged.exists():
            staged.rename(self.folder / f"{transaction}.json")

    def abort(self, transaction):
        (self.folder / f"{transaction}.open").unlink(missing_ok=True)


def test_transactions_survive_a_function_that_fails(spark, tmp_path):
    """I18: transactions pre-committed before the failure are committed once; the open ones are written again."""
    folder = tmp_path / "output"
    folder.mkdir()
    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=3)
    numbers(env).map(FailOnce(), int).rebalance().add_sink(Transactions(folder)).uid("transactions")
    env.execute("transactions")
    assert visible(folder) == list(range(RECORDS))


def test_cancelled_and_resumed_at_another_parallelism(spark, tmp_path):
    """I18: the next run commits the committables of the last checkpoint, in another timeline."""
    folder = tmp_path / "output"
    folder.mkdir()
    keys = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=3, **keys)
    numbers(env).rebalance().sink_to(Files(folder)).uid("files")
    client = env.execute_async("resumed sink")
    wait_until(lambda: len(visible(folder)) >= RECORDS // 4, "a quarter of the records is visible", DEADLINE_S)
    client.cancel().result()
    client.get_job_execution_result().exception()
    assert client.get_job_status().result() is JobStatus.CANCELED
    env = checkpointed(
        3, 200, directory=tmp_path / "checkpoints", restarts=3, **keys, **{"execution.state-recovery.path": "latest"}
    )
    numbers(env).rebalance().sink_to(Files(folder)).uid("files")
    env.execute("resumed sink")
    assert visible(folder) == list(range(RECORDS))
    timelines = {path.name[:17] for path in folder.glob("*.json")}
    assert len(timelines) == 2, "every restore by hand begins a timeline"


class FailOnceCommitted(MapFunction):
    """Fails when records are visible; from its 500th record on it waits for them."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.seen = 0

    def map(self, value):
        self.seen += 1
        if self.seen > 500:
            time.sleep(0.03)
            if any(self.folder.glob("*.json")):
                raise RuntimeError("on purpose")
        return value


def test_a_job_that_failed_is_gone_on_with_by_latest_and_one_that_finished_is_not_begun_anew(spark, tmp_path):
    """I21: with the default retention; nothing is committed twice."""
    folder = tmp_path / "output"
    folder.mkdir()
    latest = {"execution.state-recovery.path": "latest"}
    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=0)
    numbers(env).map(FailOnceCommitted(folder), int).uid("fails").sink_to(Files(folder)).uid("files")
    with pytest.raises(JobExecutionError, match="on purpose"):
        env.execute("failed sink")
    assert 0 < len(visible(folder)) < RECORDS
    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=3, **latest)
    numbers(env).map(lambda n: n, int).uid("fails").sink_to(Files(folder)).uid("files")
    env.execute("failed sink")
    assert visible(folder) == list(range(RECORDS))

    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=3)
    numbers(env, 100).sink_to(Files(tmp_path)).uid("files")
    env.execute("finished sink")
    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=3, **latest)
    numbers(env, 100).sink_to(Files(tmp_path)).uid("files")
    with pytest.raises(CheckpointNotFoundError, match="To begin anew on purpose, start the job without"):
        env.execute("finished sink")
    assert visible(tmp_path) == list(range(100))


def test_the_last_commits_are_retried_until_the_job_ends_or_gives_up(spark, tmp_path):
    """I9: the job does not end before everything is committed."""
    folder = tmp_path / "output"
    folder.mkdir()
    keys = {"rekindle.sink.committer.retry-delay": "5 ms"}
    env = checkpointed(2, 3_600_000, directory=tmp_path / "checkpoints", restarts=3, **keys)
    numbers(env, 100).rebalance().sink_to(Files(folder, delays=3)).uid("files")
    env.execute("retried")
    assert visible(folder) == list(range(100))

    env = checkpointed(
        2, 3_600_000, directory=tmp_path / "others", restarts=0, **keys, **{"sink.committer.retries": "2"}
    )
    numbers(env, 100).rebalance().sink_to(Files(tmp_path / "nowhere", delays=100)).uid("files")
    with pytest.raises(JobExecutionError, match=r"could not commit 1 of its committables in 3 tries"):
        env.execute("gives up")
