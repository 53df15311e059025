"""The traceback of a failure shows the user's frames, none of the engine's, and is never empty."""

from __future__ import annotations

import pytest

from rekindle.common import Types
from rekindle.datastream import MapFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.protocol import encode
from rekindle.runtime.failure_report import describe_failure
from rekindle.runtime.log_capture import ForwardedStream
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing.in_process import InProcessJob
from tests.support.environments import environment


def failure_of(stream) -> str:
    job = InProcessJob.of(stream)
    with pytest.raises(Exception) as caught:
        job.run()
    traceback = caught.value.__traceback__
    assert traceback is not None
    error = caught.value.with_traceback(traceback.tb_next)  # this module's frame is not the user's
    failed = describe_failure("task", next(iter(job.tasks.values())), error)
    encode(failed)
    return failed.traceback


def test_a_record_that_cannot_travel_shows_no_engine_frames():
    text = failure_of(environment(1).from_collection([1]).map(lambda n: __import__("threading").Lock()))
    assert "cannot pickle" in text
    assert "File" not in text


def test_a_call_that_does_not_fit_shows_no_engine_frames():
    text = failure_of(environment(1).from_collection([1]).flat_map(lambda n: n))
    assert text.strip() == "TypeError: 'int' object is not iterable"


def test_a_message_with_a_lone_surrogate_arrives():
    def fail(value):
        raise ValueError("half a \ud800 pair")

    assert "half a \\ud800 pair" in failure_of(environment(1).from_collection(["\ud800"]).map(fail))


def test_an_error_of_the_engines_own_shows_its_frames():
    job = InProcessJob.of(environment(1).from_collection([1]))
    next(iter(job.tasks.values()))._slices = None  # as if there were a mistake in the engine
    with pytest.raises(AttributeError) as caught:
        job.run()
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    assert "run_epoch" in describe_failure("task", None, error).traceback


def test_a_print_with_a_lone_surrogate_is_sent():
    lines = []
    stream = ForwardedStream(lines.append, "stdout")
    print("half a \ud800 pair", file=stream)
    encode(lines[0])
    assert lines[0].text == "half a \\ud800 pair"
    assert stream.encoding == "utf-8"


def test_a_refusal_shows_the_users_frame_and_none_of_ours():
    class Stateful(MapFunction):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def map(self, value):
            return value

    with pytest.raises(OperatorFailure) as caught:
        InProcessJob.of(environment(1).from_collection([1]).map(Stateful()))
    text = describe_failure("task", None, caught.value).traceback
    assert "in open" in text
    assert "call key_by(...) before it" in text
    assert "runtime/context.py" not in text


def test_a_record_that_does_not_fit_its_type_shows_no_cause_of_ours():
    stream = environment(1).from_collection([1]).map(lambda n: n + 1j, Types.LONG())
    text = failure_of(stream)
    assert "does not fit its declared type Long" in text
    assert "File" not in text
