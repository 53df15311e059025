"""JobClient, its futures and results; serialization schemas; what `rekindle.common` exports."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from io import BytesIO
from typing import Any, cast

import pytest

import rekindle.common
import rekindle.metrics
from rekindle.common import (
    ByteArraySchema,
    CompletableFuture,
    Encoder,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
    SimpleStringSchema,
    Types,
    TypeSerializer,
)
from rekindle.common.job_client import JobHandle
from rekindle.common.serialization import RowFieldExtractorSchema
from rekindle.common.serializer import VoidNamespaceSerializer
from rekindle.metrics import MetricKind, MetricReading


class Handle:
    """A job under the test's control."""

    def __init__(self) -> None:
        self.job_id = JobID()
        self.current = JobStatus.RUNNING
        self.over: Future[JobExecutionResult] = Future()

    def status(self) -> JobStatus:
        return self.current

    def cancel(self) -> Future[None]:
        self.current = JobStatus.CANCELED
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def result(self) -> Future[JobExecutionResult]:
        return self.over

    def accumulators(self) -> dict[str, Any]:
        return {"n": 1}

    def metrics(self) -> list[MetricReading]:
        return [MetricReading("count", "uid", 0, "seen", MetricKind.COUNTER, 3)]


def test_a_client_asks_its_handle() -> None:
    handle = Handle()
    client = JobClient(cast(JobHandle, handle))
    assert client.get_job_id() == handle.job_id
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert client.get_accumulators().result() == {"n": 1}
    assert [(each.operator, each.name, each.value) for each in client.get_metrics()] == [("count", "seen", 3)]
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_the_result_is_there_when_the_job_is_over() -> None:
    handle = Handle()
    future = JobClient(cast(JobHandle, handle)).get_job_execution_result()
    assert not future.done()
    assert future.exception() is None
    assert str(future) == "CompletableFuture[not completed]"
    handle.over.set_result(JobExecutionResult(handle.job_id, 1500, {"n": 3}))
    assert future.done()
    assert future.result().get_net_runtime() == 1500
    assert future.result().get_accumulator_result("n") == 3
    assert future.result().get_accumulator_result("m") is None
    assert future.result().get_all_accumulator_results() == {"n": 3}
    assert "- n: 3" in str(future.result())
    assert str(future) == "CompletableFuture[completed]"


def test_futures_can_fail_and_be_cancelled() -> None:
    failed: Future[int] = Future()
    failed.set_exception(ValueError("broken"))
    assert isinstance(CompletableFuture(failed).exception(), ValueError)
    assert "broken" in str(CompletableFuture(failed))
    waiting: CompletableFuture[int] = CompletableFuture(Future())
    assert waiting.cancel()
    assert waiting.cancelled()
    assert isinstance(waiting.exception(), CancelledError)
    assert not CompletableFuture.completed(1).cancel()
    with pytest.raises(TimeoutError):
        CompletableFuture(Future()).result(timeout=0)


def test_terminal_states() -> None:
    assert {s for s in JobStatus if s.is_globally_terminal_state()} == {
        JobStatus.FAILED,
        JobStatus.CANCELED,
        JobStatus.FINISHED,
    }
    assert JobStatus.SUSPENDED.is_terminal_state()
    assert not JobStatus.SUSPENDED.is_globally_terminal_state()


def test_schemas() -> None:
    latin = SimpleStringSchema("latin-1")
    assert latin.serialize("ä") == b"\xe4"
    assert latin.deserialize(b"\xe4") == "ä"
    assert latin.get_produced_type() == Types.STRING()
    assert ByteArraySchema().deserialize(ByteArraySchema().serialize(b"x")) == b"x"
    assert RowFieldExtractorSchema(1).serialize((1, b"k")) == b"k"
    with pytest.raises(TypeError, match="must be bytes"):
        RowFieldExtractorSchema(0).serialize((1, b"k"))
    with pytest.raises(ValueError, match="negative"):
        RowFieldExtractorSchema(-1)
    with pytest.raises(LookupError):
        SimpleStringSchema("no-such-charset")
    assert Encoder.simple_string_encoder().encode("x") == b"x\n"


def test_serializers_of_ones_own() -> None:
    class Upper(TypeSerializer[str]):
        def serialize(self, element: str, stream: BytesIO) -> None:
            stream.write(element.upper().encode())

        def deserialize(self, stream: BytesIO) -> str:
            return stream.read().decode()

    stream = BytesIO()
    Upper().serialize("a", stream)
    assert Upper().deserialize(BytesIO(stream.getvalue())) == "A"
    assert Upper() == Upper()
    assert hash(Upper()) == hash(Upper())
    assert repr(VoidNamespaceSerializer()) == "VoidNamespaceSerializer()"


PYFLINK_COMMON = """
Configuration ConfigOption ConfigOptions ExecutionConfig TypeInformation TypeSerializer Types SerializationSchema
DeserializationSchema SimpleStringSchema ByteArraySchema Encoder CompletableFuture InputDependencyConstraint JobClient
JobExecutionResult JobID JobStatus RestartStrategies RestartStrategyConfiguration Row RowKind WatermarkStrategy
Duration Instant Time
"""


def test_common_exports_what_pyflink_common_does() -> None:
    assert set(PYFLINK_COMMON.split()) <= set(rekindle.common.__all__)
    assert all(hasattr(rekindle.common, name) for name in rekindle.common.__all__)
    assert {"Counter", "Distribution", "Meter", "Metric", "MetricGroup"} <= set(rekindle.metrics.__all__)
