"""Rekindle's side: a generator of rows and a `JdbcSink`, parallelism 1, with checkpoints on disk. One JSON line."""

from __future__ import annotations

import argparse
import os
import tempfile
from functools import partial

from benchmarks.kafka.engine import EpochMarks
from benchmarks.sinks.postgres_loops import UPSERT
from benchmarks.sinks.workload import BATCH, PASSWORD, Run, row_of
from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from rekindle.spark import launcher

ROW = Types.TUPLE([Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.LONG()])


def sink(options: argparse.Namespace) -> JdbcSink:
    """The sink, at least once or exactly once."""
    database = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(options.url)
    database.with_user_name(options.user).with_password(os.environ[PASSWORD])
    sql = UPSERT.format(table=options.table, values="?, ?, ?, ?")
    execution = JdbcExecutionOptions.builder().with_batch_size(BATCH).build()
    make = JdbcSink.exactly_once_sink if options.guarantee == "exactly-once" else JdbcSink.sink
    return make(sql, ROW, database.build(), execution)


def run(options: argparse.Namespace, folder: str) -> Run:
    """Run the job; its start is not timed, its last commit is."""
    settings = {"master": "local[2]", "rekindle.progress": "off", "rekindle.epoch.target-duration": "2 s"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)
    env.enable_checkpointing(options.checkpoint_ms)
    env.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{folder}")
    source = DataGeneratorSource(partial(row_of, keys=options.keys), options.records)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "rows", ROW).sink_to(sink(options)).uid("table")
    marks = EpochMarks()
    launcher.launch(env._program("sinks"), observer=marks).result().result()
    return Run(f"Rekindle, {options.guarantee}", options.records, marks.marks[-1].seconds - marks.marks[0].seconds)


def main() -> None:
    """Do one run and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "user", "table", "guarantee"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("records", "keys", "checkpoint-ms"):
        parser.add_argument(f"--{name}", type=int, required=True)
    with tempfile.TemporaryDirectory(prefix="rekindle-sink-benchmark-") as folder:
        print(run(parser.parse_args(), folder).line(), flush=True)


if __name__ == "__main__":
    main()
