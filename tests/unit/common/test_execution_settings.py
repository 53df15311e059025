"""ExecutionConfig and restart strategies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rekindle.common import Configuration, Duration, ExecutionConfig, RestartStrategies, Time
from rekindle.errors import ConfigurationError


def test_execution_config_is_a_view_of_its_configuration() -> None:
    configuration = Configuration()
    execution = ExecutionConfig(configuration).set_parallelism(4).set_max_parallelism(64)
    assert configuration.get_integer("parallelism.default", 0) == 4
    configuration.set_integer("pipeline.max-parallelism", 32)
    assert execution.get_max_parallelism() == 32
    assert execution.get_configuration() is configuration


def test_execution_config_defaults() -> None:
    execution = ExecutionConfig()
    assert execution.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT
    assert execution.get_max_parallelism() == -1
    assert execution.get_auto_watermark_interval() == 200
    assert execution.get_task_cancellation_interval() == 30_000
    assert execution.get_task_cancellation_timeout() == 180_000
    assert execution.get_latency_tracking_interval() == 0
    assert execution.get_global_job_parameters() == {}
    assert execution.is_closure_cleaner_enabled()
    assert execution.has_auto_generated_uids_enabled()
    assert not execution.has_generic_types_disabled()


def test_execution_config_times() -> None:
    execution = ExecutionConfig().set_auto_watermark_interval(1000).set_task_cancellation_timeout(3000)
    execution.set_task_cancellation_interval(20).set_latency_tracking_interval(30)
    assert execution.get_auto_watermark_interval() == 1000
    assert execution.get_task_cancellation_timeout() == 3000
    assert execution.get_task_cancellation_interval() == 20
    assert execution.get_latency_tracking_interval() == 30


def test_an_unknown_parallelism_changes_nothing() -> None:
    execution = ExecutionConfig().set_parallelism(3).set_parallelism(ExecutionConfig.PARALLELISM_UNKNOWN)
    assert execution.get_parallelism() == 3


@pytest.mark.parametrize(
    ("on", "off", "read"),
    [
        ("enable_object_reuse", "disable_object_reuse", "is_object_reuse_enabled"),
        ("enable_force_kryo", "disable_force_kryo", "is_force_kryo_enabled"),
        ("enable_force_avro", "disable_force_avro", "is_force_avro_enabled"),
        ("disable_generic_types", "enable_generic_types", "has_generic_types_disabled"),
        ("enable_auto_generated_uids", "disable_auto_generated_uids", "has_auto_generated_uids_enabled"),
        ("enable_closure_cleaner", "disable_closure_cleaner", "is_closure_cleaner_enabled"),
    ],
)
def test_switches(on: str, off: str, read: str) -> None:
    execution = ExecutionConfig()
    assert getattr(getattr(execution, on)(), read)() is True
    assert getattr(getattr(execution, off)(), read)() is False


def test_global_job_parameters_together_and_one_by_one() -> None:
    configuration = Configuration.from_dict({"pipeline.global-job-parameters.a": "1"})
    execution = ExecutionConfig(configuration).set_global_job_parameters({"b": 2, "url": "http://x:1"})
    assert execution.get_global_job_parameters() == {"a": "1", "b": "2", "url": "http://x:1"}


def test_equality() -> None:
    assert ExecutionConfig().set_parallelism(2) == ExecutionConfig().set_parallelism(2)
    assert hash(ExecutionConfig().set_parallelism(2)) == hash(ExecutionConfig().set_parallelism(2))
    assert ExecutionConfig().set_parallelism(2) != ExecutionConfig()


@pytest.mark.parametrize("delay", [10_000, timedelta(seconds=10), Duration.of_seconds(10), Time.seconds(10)])
def test_fixed_delay_takes_any_amount_of_time(delay: int) -> None:
    strategy = RestartStrategies.fixed_delay_restart(3, delay)
    assert strategy.get_restart_attempts() == 3
    assert strategy.get_delay_between_attempts_interval() == timedelta(seconds=10)
    assert strategy == RestartStrategies.fixed_delay_restart(3, 10_000)
    assert isinstance(strategy, RestartStrategies.FixedDelayRestartStrategyConfiguration)  # type: ignore[attr-defined]


def test_failure_rate() -> None:
    strategy = RestartStrategies.failure_rate_restart(5, 60_000, 100)
    assert (strategy.get_max_failure_rate(), strategy.get_failure_interval()) == (5, timedelta(minutes=1))
    assert strategy.get_delay_between_attempts_interval() == timedelta(milliseconds=100)


def test_exponential_delay_refuses_what_makes_no_sense() -> None:
    assert RestartStrategies.exponential_delay_restart(1, 2, 1.5, 3, 0.1).get_initial_backoff() == timedelta(
        milliseconds=1
    )
    with pytest.raises(ValueError, match="multiplier"):
        RestartStrategies.exponential_delay_restart(1, 2, 0.5, 3, 0.1)
    with pytest.raises(ValueError, match="jitter"):
        RestartStrategies.exponential_delay_restart(1, 2, 1.5, 3, 1.1)
    with pytest.raises(ValueError, match="maximum backoff"):
        RestartStrategies.exponential_delay_restart(3, 2, 1.5, 3, 0.1)
    with pytest.raises(ValueError, match="negative"):
        RestartStrategies.fixed_delay_restart(1, -1)
    with pytest.raises(TypeError, match="no amount of time"):
        RestartStrategies.fixed_delay_restart(1, "10 s")  # type: ignore[arg-type]


def test_strategies_from_a_configuration() -> None:
    def of(**settings: str) -> object:
        keys = {name.replace("__", ".").replace("_", "-"): value for name, value in settings.items()}
        return RestartStrategies.from_configuration(Configuration.from_dict(keys))

    assert of() == RestartStrategies.no_restart()
    assert of(execution__checkpointing__interval="10 s") == RestartStrategies.exponential_delay_restart(
        1_000, 60_000, 1.5, 3_600_000, 0.1
    )
    assert of(restart_strategy="none", execution__checkpointing__interval="10 s") == RestartStrategies.no_restart()
    assert of(
        restart_strategy__type="fixed-delay",
        restart_strategy__fixed_delay__attempts="5",
        restart_strategy__fixed_delay__delay="30 s",
    ) == RestartStrategies.fixed_delay_restart(5, 30_000)
    assert of(restart_strategy__type="failure-rate") == RestartStrategies.failure_rate_restart(1, 60_000, 1_000)


@pytest.mark.parametrize("attempts", ["3", -1, 2.0, True, None])
def test_restarts_are_a_number_of_them(attempts: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"^A fixed delay restart takes 0 restarts or more, not {attempts!r}\.$"
    ):
        RestartStrategies.fixed_delay_restart(attempts, 1_000)
    assert RestartStrategies.fixed_delay_restart(0, 1_000).get_restart_attempts() == 0


@pytest.mark.parametrize("failures", ["3", -1, 0, True])
def test_a_failure_rate_is_one_failure_or_more(failures: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"^A failure rate restart takes 1 failure or more.*, not {failures!r}\.$"
    ):
        RestartStrategies.failure_rate_restart(failures, 60_000, 100)


@pytest.mark.parametrize("factor", ["2", None, True, float("nan"), float("inf")])
def test_factors_of_an_exponential_delay_are_numbers(factor: Any) -> None:
    with pytest.raises((ConfigurationError, ValueError), match=r"multiplier .*(not|at least 1)"):
        RestartStrategies.exponential_delay_restart(1, 2, factor, 3, 0.1)
    with pytest.raises((ConfigurationError, ValueError), match=r"jitter factor .*(not|between 0 and 1)"):
        RestartStrategies.exponential_delay_restart(1, 2, 1.5, 3, factor)


@pytest.mark.parametrize("interval", ["10", -1, 1.5, True, None])
def test_intervals_are_milliseconds(interval: Any) -> None:
    for name in ("set_auto_watermark_interval", "set_task_cancellation_timeout", "set_task_cancellation_interval"):
        with pytest.raises(ConfigurationError, match=rf"^'[a-z.-]+' takes 0 milliseconds or more, not {interval!r}\.$"):
            getattr(ExecutionConfig(), name)(interval)


def test_a_negative_interval_switches_latency_tracking_off() -> None:
    assert ExecutionConfig().set_latency_tracking_interval(-1).get_latency_tracking_interval() == -1
    with pytest.raises(ConfigurationError, match=r"takes whole milliseconds, not '10'"):
        ExecutionConfig().set_latency_tracking_interval("10")  # type: ignore[arg-type]


@pytest.mark.parametrize("parameters", ["region=eu", None, [("region", "eu")]])
def test_job_parameters_are_names_and_values(parameters: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"takes a dict of names and values, not"):
        ExecutionConfig().set_global_job_parameters(parameters)
