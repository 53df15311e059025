"""Execution environments for tests: plain ones, and ones that make checkpoints."""

from __future__ import annotations

from pathlib import Path

from rekindle.common import Configuration, RestartStrategies, RestartStrategyConfiguration
from rekindle.datastream import StreamExecutionEnvironment

RESTART_DELAY_MS = 50


def environment(parallelism: int = 1, **settings: str) -> StreamExecutionEnvironment:
    """An environment without checkpoints and without a progress line. `settings` are keys of the configuration."""
    configuration = Configuration.from_dict({"rekindle.progress": "off", **settings})
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def checkpointed(
    parallelism: int = 1,
    interval_ms: int = 1000,
    *,
    directory: Path | str | None = None,
    restarts: int | None = None,
    unaligned: bool = False,
    **settings: str,
) -> StreamExecutionEnvironment:
    """An environment that makes checkpoints, below `directory` if one is given, and restarts a job `restarts` times.

    Without `restarts` the environment keeps the default restart strategy. A job in one process makes checkpoints only
    when its test asks for one, whatever the interval.
    """
    if directory is not None:
        settings = {"execution.checkpointing.dir": str(directory), **settings}
    env = environment(parallelism, **settings).enable_checkpointing(interval_ms)
    if unaligned:
        env.get_checkpoint_config().enable_unaligned_checkpoints()
    if restarts is not None:
        env.set_restart_strategy(_restart(restarts))
    return env


def _restart(times: int) -> RestartStrategyConfiguration:
    return RestartStrategies.fixed_delay_restart(times, RESTART_DELAY_MS) if times else RestartStrategies.no_restart()
