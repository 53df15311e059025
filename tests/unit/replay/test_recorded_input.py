"""What a task keeps for a replay: bounded, since the last completed checkpoint, and nothing if it is off."""

from __future__ import annotations

import pytest

from rekindle.checkpoint.recordings import Epoch, RecordedCompletion, Recording, decode_recording, encode_recording
from rekindle.common import Configuration
from rekindle.datastream import DataStream, StreamExecutionEnvironment
from rekindle.errors import CorruptCheckpointError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.recording.recorded_task import RecordedTask
from rekindle.runtime.recording.recorder import Recorder
from rekindle.runtime.task import Task
from rekindle.testing import InProcessJob


def numbers(**settings: str) -> DataStream:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)

    def check(n: int) -> int:
        if n == 500:
            raise ValueError(n)
        return n

    return env.from_collection(list(range(1000))).rebalance().map(check).name("check")


def recording_of(**settings: str) -> tuple[InProcessJob, Recording | None]:
    job = InProcessJob.of(numbers(**settings), max_records=50)
    with pytest.raises(OperatorFailure):
        job.run()
    job.kill()
    return job, job.recording


def test_nothing_is_recorded_unless_the_setting_says_so() -> None:
    job, recording = recording_of()
    assert recording is None
    assert {type(task) for task in job.tasks.values()} == {Task}
    job, recording = recording_of(**{"rekindle.replay.record-input": "true"})
    assert recording is not None
    assert {type(task) for task in job.tasks.values()} == {RecordedTask}


def test_a_recording_over_its_bound_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rekindle.replay")
    settings = {"rekindle.replay.record-input": "true", "rekindle.replay.max-bytes": "2 kb"}
    assert recording_of(**settings)[1] is None
    assert "more than 2048 bytes of input since the last checkpoint" in caplog.text


def test_a_completed_checkpoint_makes_room_for_what_follows() -> None:
    settings = {"rekindle.replay.record-input": "true", "rekindle.replay.max-bytes": "2 kb"}
    job = InProcessJob.of(numbers(**settings), max_records=50)
    for _ in range(9):
        job.epoch()
    job.checkpoint()
    with pytest.raises(OperatorFailure):
        job.epoch()
    job.kill()
    assert job.recording is not None
    assert job.recording.bases == [1]
    assert [type(event) for event in job.recording.segments[0].events] == [RecordedCompletion, Epoch]


def epoch() -> Epoch:
    return Epoch(max_records=1, target_ms=1, leave_after_ms=None, aligned={}, checkpoint=None)


def played(recorder: Recorder, *chunks: bytes) -> None:
    for chunk in chunks:
        recorder.received(chunk)
    with recorder.during(epoch()):
        pass


def test_segments_begin_at_barriers_and_end_with_completed_checkpoints() -> None:
    recorder = Recorder("task", max_bytes=10_000)
    played(recorder, b"a")
    recorder.barrier_passed(1)
    played(recorder, b"b")
    recorder.barrier_passed(2)
    played(recorder, b"c")
    recorder.aborted(2)
    played(recorder, b"d")
    recorder.barrier_passed(3)
    played(recorder, b"e")

    def rows() -> list[tuple[int | None, list[bytes]]]:
        recorded = recorder.recorded()
        assert recorded is not None
        return [
            (each.checkpoint_id, [chunk for event in each.events if isinstance(event, Epoch) for chunk in event.chunks])
            for each in recorded[1]
        ]

    assert rows() == [(None, [b"a"]), (1, [b"b", b"c", b"d"]), (3, [b"e"])]
    recorder.completed(1)
    assert rows() == [(1, [b"b", b"c", b"d"]), (3, [b"e"])]
    recorder.completed(3)
    assert rows() == [(3, [b"e"])]


def test_what_was_dropped_stays_dropped_until_a_later_checkpoint_is_complete() -> None:
    recorder = Recorder("task", max_bytes=1000)
    played(recorder, b"x" * 2000)
    assert recorder.recorded() is None
    recorder.barrier_passed(1)
    played(recorder, b"y")
    assert recorder.recorded() is None  # until checkpoint 1 is complete, a replay would need what was dropped
    recorder.completed(1)
    assert recorder.recorded() is not None


def test_a_recording_is_read_as_it_was_written_and_refused_when_damaged() -> None:
    recording = recording_of(**{"rekindle.replay.record-input": "true"})[1]
    assert recording is not None
    data = b"".join(encode_recording(recording))
    assert decode_recording(data, "it") == recording
    with pytest.raises(CorruptCheckpointError, match="it is damaged"):
        decode_recording(data[:-1] + bytes([data[-1] ^ 1]), "it")
