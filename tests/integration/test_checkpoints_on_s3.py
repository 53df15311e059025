"""A job on Spark whose checkpoints lie on an S3 server: the settings reach the slots, and no other process."""

from __future__ import annotations

import psutil
import pytest

from rekindle.checkpoint.paths import BEGUN, COMPLETED
from rekindle.checkpoint.store.open_store import open_store
from rekindle.common import JobStatus, RestartStrategies, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import StoreError
from tests.support.environments import checkpointed
from tests.support.s3_server import SECRET

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
RECORDS, KEYS, PER_SECOND = 3000, 10, 1500
EXPECTED = sorted((key, count) for key in range(KEYS) for count in range(1, RECORDS // KEYS + 1))


class Count(KeyedProcessFunction):
    """Counts per key; fails once, in the first attempt, if told to.

    The text makes the state too large for the manifest, so that slots write and read files.
    """

    def __init__(self, fail_at=None):
        self.fail_at = fail_at

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))
        self.fails = runtime_context.get_attempt_number() == 0
        self.seen = 0

    def process_element(self, value, ctx):
        self.seen += 1
        if self.fails and self.seen == self.fail_at:
            raise RuntimeError("on purpose")
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.text.update(f"{count} " * 1000)
        yield value % KEYS, count


def on_s3(s3, directory, **settings):
    keys = {
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        **s3.settings(),
        **settings,
    }
    return checkpointed(2, 300, directory=directory, restarts=2, **keys)


def counts(env, fail_at=None):
    source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")
    return numbers.key_by(lambda n: n % KEYS, int).process(Count(fail_at), PAIR).uid("count")


def test_a_function_that_fails_once_changes_nothing(spark, s3, capfd):
    bucket = s3.new_bucket()
    with counts(on_s3(s3, f"{bucket}/checkpoints"), fail_at=900).execute_and_collect("on s3") as results:
        seen = []
        for result in results:
            if not seen:
                command_lines = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
                assert not any(SECRET in line for line in command_lines), "a secret on a command line"
            seen.append(result)
    assert sorted(seen) == EXPECTED
    store = open_store(bucket, s3.options())
    left = [entry.path for entry in store.list()]
    assert left, "nothing was ever written there"
    unclaimed = [path for path in left if "/owners/" not in path and "/_history/" not in path]
    assert {path.rpartition("/")[2] for path in unclaimed} == {BEGUN, COMPLETED}, "more than claims and notes stays"
    assert not any(SECRET.encode() in store.read(path) for path in left)
    printed = "".join(capfd.readouterr())
    assert SECRET not in printed


def test_latest_resumes_and_no_file_holds_a_secret(spark, s3):
    bucket = s3.new_bucket()
    first = []
    with counts(on_s3(s3, bucket)).execute_and_collect("resumed on s3") as results:
        for result in results:
            first.append(result)
            if len(first) > RECORDS // 3:
                break
        client = results._job
    client.result().exception()
    assert client.status() is JobStatus.CANCELED
    store = open_store(bucket, s3.options())
    files = [entry.path for entry in store.list()]
    assert {path.rpartition("/")[2].rpartition(".")[2] for path in files} >= {"_metadata", "state"}
    assert not any(SECRET.encode() in store.read(path) for path in files)
    env = on_s3(s3, bucket, **{"execution.state-recovery.path": "latest"})
    with counts(env).execute_and_collect("resumed on s3") as results:
        second = list(results)
    assert not set(first) & set(second), "what a completed checkpoint contains is not handed out again"
    for key in range(KEYS):
        own = sorted(count for each, count in second if each == key)
        assert own == list(range(own[0], RECORDS // KEYS + 1)), "nothing lost, nothing twice"
        assert own[0] > 1, "it began anew"


def test_a_bucket_that_is_not_there_ends_the_job_before_it_starts(spark, s3):
    env = on_s3(s3, "s3://nobody-made-this/checkpoints")
    env.set_restart_strategy(RestartStrategies.no_restart())
    with (
        pytest.raises(StoreError, match="bucket of s3://nobody-made-this/checkpoints does not exist"),
        counts(env).execute_and_collect("no bucket") as results,
    ):
        list(results)
