"""An event time that no clock has, beyond 64 bits, is refused with a sentence where it is assigned."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import WatermarkStrategy
from rekindle.common.watermark_strategy import MAX_WATERMARK, Watermark, WatermarkGenerator
from rekindle.datastream.functions import SourceFunction
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import environment

BEYOND = [2**63, -(2**63) - 1]


def failure_of(job: InProcessJob) -> Exception:
    with pytest.raises(OperatorFailure) as failure:
        job.run()
    job.kill()
    cause = failure.value.__cause__
    assert isinstance(cause, Exception)
    return cause


@pytest.mark.parametrize("time", BEYOND)
def test_of_an_assigner(time: int) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v, _: v)
    stream = environment().from_collection([1, time, 2]).assign_timestamps_and_watermarks(strategy)
    cause = failure_of(InProcessJob.of(stream.key_by(lambda v: v)))
    assert str(cause) == f"a timestamp must fit into 64 bits (milliseconds since 1970), and {time} does not"


def test_the_last_moment_of_64_bits() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v, _: v)
    stream = environment().from_collection([MAX_WATERMARK, -(2**63)]).assign_timestamps_and_watermarks(strategy)
    assert len(InProcessJob.of(stream.rebalance()).run()) == 2


class Collects(SourceFunction):
    def __init__(self, time: Any) -> None:
        self.time = time

    def run(self, ctx: Any) -> None:
        ctx.collect_with_timestamp("a", self.time)

    def cancel(self) -> None:
        pass


class Marks(Collects):
    def run(self, ctx: Any) -> None:
        ctx.collect("a")
        ctx.emit_watermark(Watermark(self.time))


class Generates(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(Watermark(2**63))

    def on_periodic_emit(self, output: Any) -> None:
        pass


@pytest.mark.parametrize("time", [*BEYOND, "noon", None])
@pytest.mark.parametrize(("source", "what"), [(Collects, "timestamp"), (Marks, "watermark")])
def test_of_a_source_function(source: type[Collects], what: str, time: Any) -> None:
    cause = failure_of(InProcessJob.of(environment().add_source(source(time)).rebalance()))
    assert str(cause).startswith(f"a {what} must ")
    assert repr(time) in str(cause)


def test_of_a_generator() -> None:
    strategy = WatermarkStrategy.for_generator(Generates)
    stream = environment().from_collection([1]).assign_timestamps_and_watermarks(strategy)
    assert str(failure_of(InProcessJob.of(stream.rebalance()))).startswith("a watermark must fit into 64 bits")
