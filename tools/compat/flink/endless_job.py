"""A job that runs until it is stopped or cancelled: python -m tools.compat.flink.endless_job DIRECTORY PORT."""

from __future__ import annotations

import sys

from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.number_seq import NumberSequenceSource


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
    source = NumberSequenceSource(0, 1 << 60)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers.key_by(lambda n: n % 10).reduce(max).filter(lambda n: False).print()
    env.execute("endless")


if __name__ == "__main__":
    main()
