"""The trace of a replay: each record, each watermark, each change of the state of one key."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import Configuration, Duration, Time, Types, WatermarkStrategy
from rekindle.datastream import DataStream, StreamExecutionEnvironment
from rekindle.datastream.window import TumblingEventTimeWindows
from rekindle.replay import Trace
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob, replay

SALES = [("ann", 1), ("bob", 2), ("ann", 3), ("bob", 40), ("ann", 5)]


def environment(backend: str) -> StreamExecutionEnvironment:
    keys = {"rekindle.replay.record-input": "true", "state.backend.type": backend}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(keys)).set_parallelism(1)


def add(first: Any, second: Any) -> Any:
    if first[1] + second[1] > 8:
        raise ValueError((first, second))
    return first[0], first[1] + second[1]


def sums(backend: str) -> DataStream:
    stream = environment(backend).from_collection(SALES, Types.TUPLE([Types.STRING(), Types.LONG()]))
    return (
        stream.key_by(lambda sale: sale[0], Types.STRING()).reduce(add).name("sum").map(lambda sale: sale).name("end")
    )


def traced(job: InProcessJob, stream: DataStream, keys: list[Any]) -> list[str]:
    with pytest.raises(OperatorFailure):
        job.run()
    assert job.recording is not None
    lines: list[str] = []
    with replay(job.recording, stream, store=job.store, trace=Trace(lines.append, keys)) as outcome:
        assert outcome.error is not None
    job.kill()
    return [" ".join(line.split()) for line in lines]


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_records_and_changes_of_a_key_are_told_in_their_order(backend: str) -> None:
    assert traced(InProcessJob.of(sums(backend)), sums(backend), ["ann"]) == [
        "1 sum <- ('ann', 1)",
        "end <- ('ann', 1)",
        "Sink: Collect Stream Sink <- ('ann', 1)",
        "sum, rekindle:reduce['ann']: - -> ('ann', 1)",
        "2 sum <- ('bob', 2)",
        "end <- ('bob', 2)",
        "Sink: Collect Stream Sink <- ('bob', 2)",
        "3 sum <- ('ann', 3)",
        "end <- ('ann', 4)",
        "Sink: Collect Stream Sink <- ('ann', 4)",
        "sum, rekindle:reduce['ann']: ('ann', 1) -> ('ann', 4)",
        "4 sum <- ('bob', 40)",
    ]


def windows() -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    timed = strategy.with_timestamp_assigner(lambda sale, _: sale[1] * 100)
    stream = environment("hashmap").from_collection(SALES, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = stream.assign_timestamps_and_watermarks(timed).key_by(lambda sale: sale[0], Types.STRING())
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(1000))).reduce(add).name("sum")


def test_the_windows_of_a_key_are_told() -> None:
    lines = traced(InProcessJob.of(windows()), windows(), ["ann"])
    changes = [line for line in lines if "window (0, 1000)" in line]
    assert [line.rpartition(": ")[2] for line in changes] == ["- -> ('ann', 1)", "('ann', 1) -> ('ann', 4)"]
