"""Duration, Instant, Time, watermark strategies, the clock and ids."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import timedelta
from typing import Any

import pytest

from rekindle.clock import SystemClock
from rekindle.common import (
    Duration,
    Instant,
    JobID,
    Time,
    TimestampAssigner,
    TimeUnit,
    WatermarkGenerator,
    WatermarkStrategy,
)
from rekindle.common.time import as_millis
from rekindle.common.watermark_strategy import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    Watermark,
    WatermarkAlignment,
    WatermarkOutput,
)
from rekindle.ids import new_job_id, parse_job_id
from rekindle.serde import cloud_dumps


def test_durations() -> None:
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440) == Duration.of_seconds(86_400)
    assert Duration.of_millis(1) == Duration.of_nanos(1_000_000)
    assert Duration.of_nanos(1_999_999).to_millis() == 1
    assert Duration.of_seconds(1) < Duration.of_millis(1001)
    assert Duration.of_millis(1500).to_timedelta() == timedelta(seconds=1.5)
    assert hash(Duration.of_seconds(1)) == hash(Duration.of_millis(1000))


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (Duration.of_seconds(0), "PT0S"),
        (Duration.of_millis(1500), "PT1.5S"),
        (Duration.of_seconds(3661), "PT1H1M1S"),
        (Duration.of_days(2), "PT48H"),
        (Duration.of_minutes(-1), "-PT1M"),
    ],
)
def test_durations_print_as_in_java(duration: Duration, text: str) -> None:
    assert repr(duration) == text


@pytest.mark.parametrize("millis", [-1001, -1000, -1, 0, 1, 999, 1000, 1_700_000_000_123])
def test_instants_keep_milliseconds(millis: int) -> None:
    assert Instant.of_epoch_milli(millis).to_epoch_milli() == millis


def test_times() -> None:
    assert Time.days(1).to_milliseconds() == Time.hours(24).to_milliseconds() == 86_400_000
    assert Time.minutes(1) == Time.seconds(60) == Time.milliseconds(60_000)


def test_times_of_a_unit() -> None:
    assert Time.of(30, TimeUnit.SECONDS) == Time.seconds(30)
    assert Time.of(1, TimeUnit.DAYS) == Time.of(24, TimeUnit.HOURS) == Time.of(1440, TimeUnit.MINUTES) == Time.days(1)
    assert Time.of(1_999, TimeUnit.MICROSECONDS) == Time.of(1, TimeUnit.MILLISECONDS)
    assert Time.of(1_000_000, TimeUnit.NANOSECONDS).to_milliseconds() == 1
    with pytest.raises(TypeError, match=r"TimeUnit\.SECONDS, not 'seconds'"):
        Time.of(1, "seconds")  # type: ignore[arg-type]


def test_any_amount_of_time_in_milliseconds() -> None:
    assert [as_millis(x) for x in (5, Time.seconds(1), Duration.of_seconds(1), timedelta(seconds=1))] == [
        5,
        1000,
        1000,
        1000,
    ]
    with pytest.raises(TypeError, match="no amount of time"):
        as_millis("1 s")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no amount of time"):
        as_millis(True)


class ByField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value["t"])


class Punctuated(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def test_strategies_are_data() -> None:
    assert WatermarkStrategy.no_watermarks().kind == "none"
    assert WatermarkStrategy.for_monotonous_timestamps().kind == "monotonous"
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    assert (bounded.kind, bounded.max_out_of_orderness_ms, bounded.idle_timeout_ms) == ("bounded", 5000, None)
    custom = WatermarkStrategy.for_generator(Punctuated)
    assert custom.kind == "custom"
    assert custom.generator_supplier is not None
    assert isinstance(custom.generator_supplier(), Punctuated)
    with pytest.raises(dataclasses.FrozenInstanceError):
        bounded.kind = "none"  # type: ignore[misc]


def test_with_methods_give_new_strategies() -> None:
    plain = WatermarkStrategy.for_monotonous_timestamps()
    full = plain.with_timestamp_assigner(ByField()).with_idleness(Duration.of_seconds(1))
    assert plain.timestamp_assigner is None
    assert full.idle_timeout_ms == 1000
    assert full.timestamp_assigner is not None
    assert full.timestamp_assigner.extract_timestamp({"t": 7}, 0) == 7


def test_a_function_can_assign_timestamps_and_travels() -> None:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, timestamp: value + timestamp)
    again = pickle.loads(cloud_dumps(strategy))
    assert isinstance(again.timestamp_assigner, TimestampAssigner)
    assert again.timestamp_assigner.extract_timestamp(1, 2) == 3


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="assigns no timestamps"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="does not make generators"):
        WatermarkStrategy.for_generator(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="idle timeout"):
        WatermarkStrategy.no_watermarks().with_idleness(Duration.of_seconds(0))
    with pytest.raises(ValueError, match="negative"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(-1))


def test_alignment_names_group_drift_and_interval() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment("group", Duration.of_seconds(2))
    assert strategy.alignment == WatermarkAlignment("group", max_drift_ms=2000, update_interval_ms=1000)
    every = strategy.with_watermark_alignment("group", Duration.of_seconds(2), Duration.of_millis(50))
    assert every.alignment == WatermarkAlignment("group", max_drift_ms=2000, update_interval_ms=50)
    with pytest.raises(ValueError, match="cannot be negative"):
        strategy.with_watermark_alignment("group", Duration.of_seconds(-1))


def test_watermark_bounds() -> None:
    assert (MIN_WATERMARK, MAX_WATERMARK) == (-(2**63), 2**63 - 1)


def test_the_clock_goes_forward() -> None:
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.wall_ms() > 1_700_000_000_000


def test_job_ids() -> None:
    assert new_job_id() != new_job_id()
    assert JobID("A" * 32) == JobID("a" * 32)
    assert str(JobID("a" * 32)) == "a" * 32
    assert len({JobID("a" * 32), JobID("a" * 32)}) == 1
    for wrong in ("", "a" * 31, "g" * 32):
        with pytest.raises(ValueError, match="not a job id"):
            parse_job_id(wrong)
