"""From files through keyed state into files, on Spark: with any failure the committed output is the undisturbed one."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Duration, Encoder, JobStatus, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction
from rekindle.datastream.connectors.file_system import (
    BucketAssigner,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    StreamFormat,
)
from rekindle.datastream.state import ValueStateDescriptor
from tests.support.environments import checkpointed
from tests.support.slot_processes import slots_of
from tests.support.waiting import wait_until

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
KEYS = 10
DEADLINE_S = 60.0


class Count(KeyedProcessFunction):
    """Counts per key, slowly enough for some checkpoints; fails once if `fail_at` is given."""

    def __init__(self, fail_at: int | None = None):
        self.fail_at = fail_at

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.fails = runtime_context.get_attempt_number() == 0
        self.seen = 0

    def process_element(self, value, ctx):
        self.seen += 1
        if self.seen % 100 == 0:
            time.sleep(0.05)
        if self.fails and self.seen == self.fail_at:
            raise RuntimeError("on purpose")
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % KEYS, count


def sink_into(directory: Path) -> FileSink:
    builder = FileSink.for_row_format(str(directory / "out"), Encoder.json_lines_encoder())
    return builder.with_bucket_assigner(BucketAssigner.of(lambda pair: f"key={pair[0]}")).build()


def committed(directory: Path) -> list[tuple[int, int]]:
    """The lines that a reader sees: those of files whose names are not hidden."""
    files = [path for path in (directory / "out").rglob("*") if path.is_file() and not path.name.startswith(".")]
    return sorted(tuple(json.loads(line)) for path in files for line in path.read_text().splitlines())


def counts_up_to(per_key: int) -> list[tuple[int, int]]:
    return [(key, count) for key in range(KEYS) for count in range(1, per_key + 1)]


def in_progress(directory: Path) -> list[str]:
    return [path.name for path in (directory / "out").rglob(".*") if path.is_file()]


# -- bounded ----------------------------------------------------------------------------------------------------------

FILES, LINES = 4, 1000


def run_bounded(directory: Path, name: str, function: Count, lines_per_file: int = LINES) -> None:
    source = directory / "in"
    source.mkdir()
    for number in range(FILES):
        lines = [str(number * lines_per_file + line) for line in range(lines_per_file)]
        (source / f"{number}.txt").write_text("\n".join(lines))
    env = checkpointed(2, 300, directory=directory / "checkpoints", restarts=5)
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(source))
    files.set_file_enumerator(FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes=1500))
    read = env.from_source(files.build(), WatermarkStrategy.no_watermarks(), "files")
    counted = read.map(int, Types.LONG()).key_by(lambda n: n % KEYS, Types.LONG()).process(function, PAIR)
    counted.sink_to(sink_into(directory)).name("files out").uid("out")
    env.execute(name)


@pytest.mark.parametrize("fail_at", [pytest.param(None, marks=pytest.mark.long), 1200])
def test_a_function_that_fails_once_changes_nothing_in_the_files(spark, tmp_path, fail_at):
    """I18: every line is committed once, and staged files of the failed attempt are gone at the end."""
    run_bounded(tmp_path, f"files fail at {fail_at}", Count(fail_at))
    assert committed(tmp_path) == counts_up_to(FILES * LINES // KEYS)
    assert in_progress(tmp_path) == []


def test_a_slot_killed_while_files_are_in_progress(spark, tmp_path):
    """I18: SIGKILL, after some output was committed and while more is staged."""
    name = "files killed"
    killed = []

    def kill_once() -> None:
        wait_until(lambda: bool(committed(tmp_path)), "a commit", DEADLINE_S)
        for victim in slots_of(name)[:1]:
            victim.send_signal(signal.SIGKILL)
            killed.append(victim.pid)

    killer = threading.Thread(target=kill_once)
    killer.start()
    try:
        run_bounded(tmp_path, name, Count(), lines_per_file=4 * LINES)  # the job must not end before the kill
    finally:
        killer.join()
    assert killed
    assert committed(tmp_path) == counts_up_to(FILES * 4 * LINES // KEYS)
    assert in_progress(tmp_path) == []


# -- watching ---------------------------------------------------------------------------------------------------------


def drop(directory: Path, numbers: range) -> None:
    """A file appears as a careful producer makes it: whole, by a rename."""
    hidden = directory / f".{numbers.start}"
    hidden.write_text("".join(f"{number}\n" for number in numbers))
    os.rename(hidden, directory / f"from-{numbers.start}.txt")


def watch(directory: Path, parallelism: int, **settings: Any):
    retained: dict[str, Any] = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    env = checkpointed(parallelism, 300, directory=directory / "checkpoints", restarts=5, **retained, **settings)
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory / "in"))
    source = files.monitor_continuously(Duration.of_millis(50)).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "files").uid("files")
    numbers = lines.map(int, Types.LONG())
    counted = numbers.key_by(lambda n: n % KEYS, Types.LONG()).process(Count(), PAIR).uid("count")
    counted.sink_to(sink_into(directory)).uid("out")
    return env.execute_async("files watched")


def test_new_files_are_read_once_over_a_kill_and_a_restore_at_another_parallelism(spark, tmp_path):
    (tmp_path / "in").mkdir()
    drop(tmp_path / "in", range(500))
    job = watch(tmp_path, 2)
    drop(tmp_path / "in", range(500, 1000))
    wait_until(lambda: committed(tmp_path) == counts_up_to(100), "output", DEADLINE_S)
    slots_of("files watched")[0].send_signal(signal.SIGKILL)
    drop(tmp_path / "in", range(1000, 2000))
    wait_until(lambda: committed(tmp_path) == counts_up_to(200), "output after the kill", DEADLINE_S)
    job.cancel().result(DEADLINE_S)
    job.get_job_execution_result().exception()
    assert job.get_job_status().result() is JobStatus.CANCELED
    drop(tmp_path / "in", range(2000, 3000))
    job = watch(tmp_path, 3, **{"execution.state-recovery.path": "latest"})
    try:
        wait_until(lambda: committed(tmp_path) == counts_up_to(300), "output after the restore", DEADLINE_S)
    finally:
        job.cancel().result(DEADLINE_S)
    assert committed(tmp_path) == counts_up_to(300)
