"""A job that runs until it is stopped or cancelled: python -m tools.compat.flink.endless_job DIRECTORY PORT."""

from __future__ import annotations

import sys

from rekindle.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from rekindle.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy


class FailsOnce(MapFunction):
    """Fails at the first record, in the first attempt only: so there is an exception to look at."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._first = runtime_context.get_attempt_number() == 0

    def map(self, value: int) -> int:
        if self._first:
            raise ValueError("once")
        return value


def main() -> None:
    """Count for ever, with a checkpoint each second."""
    directory, port = sys.argv[1:]
    configuration = Configuration.from_dict(
        {
            "execution.checkpointing.dir": f"{directory}/checkpoints",
            "execution.checkpointing.savepoint-dir": f"{directory}/savepoints",
            "rekindle.rest.directories": directory,
            "rest.port": port,
            "rekindle.progress": "off",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.enable_checkpointing(1000)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 100))
    source = DataGeneratorSource(lambda n: n, 1 << 60, RateLimiterStrategy.per_second(1000))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    checked = numbers.key_by(lambda n: n % 10).map(FailsOnce(), Types.LONG())
    checked.key_by(lambda n: n % 10).reduce(max).filter(lambda n: False).print()
    env.execute("endless")


if __name__ == "__main__":
    main()
