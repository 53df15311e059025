"""PyFlink with its Kafka connector: values as strings, the decoder in a `map`, a count in `ValueState`.

The function takes the clock's marks, and writes them with its counts to a file when it is closed.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import json
import os
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyflink.common import SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from pyflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from pyflink.datastream.state import ValueStateDescriptor

from benchmarks.kafka.peers.arguments import parser
from benchmarks.kafka.peers.connector_jar import connector_jar
from benchmarks.kafka.workload import Progress, pairs_decoder, report
from benchmarks.keyed_count.peers.pyflink import MODES, WORKERS, configuration, environment_with
from benchmarks.keyed_count.workload import Mark

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Decode(MapFunction):
    """Decodes one value."""

    def __init__(self, decoder: str) -> None:
        self.decoder = decoder

    def open(self, runtime_context: RuntimeContext) -> None:
        self.pairs = pairs_decoder(self.decoder)

    def map(self, value: str) -> tuple[str, int]:
        return self.pairs((value,))[0]


class Count(KeyedProcessFunction):
    """Counts the records of each key in state."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.last_counts: dict[str, int] = {}
        self.progress = Progress(500)

    def process_element(self, value: Any, ctx: Any) -> Iterable[int]:
        count = (self.count.value() or 0) + value[1]
        self.count.update(count)
        self.last_counts[value[0]] = count
        self.progress.add(1)
        return ()

    def close(self) -> None:
        if not self.last_counts:
            return
        self.progress.note()
        marks = [(mark.seconds, mark.records) for mark in self.progress.marks]
        noted = {"counted": sum(self.last_counts.values()), "marks": marks}
        Path(self.directory, f"{uuid.uuid4()}.json").write_text(json.dumps(noted))
        self.last_counts = {}


def run(options: argparse.Namespace, settings: dict[str, str], directory: str) -> None:
    env = environment_with(settings)
    env.add_jars(connector_jar().as_uri())
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(options.bootstrap)
        .set_topics(options.topic)
        .set_group_id("benchmark")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    values = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
    keyed = values.map(Decode(options.decoder), PAIR).key_by(lambda pair: pair[0], key_type=Types.STRING())
    keyed.process(Count(directory), output_type=Types.LONG()).print()
    env.execute("kafka")


def main() -> None:
    """Do one run and print one JSON line."""
    arguments = parser(__doc__)
    arguments.add_argument("--mode", choices=MODES, default="process")
    arguments.add_argument("--bundle", type=int, default=100_000)
    arguments.add_argument("--bundle-time-ms", type=int, default=1_000)
    options = arguments.parse_args()
    settings = configuration(options)
    with tempfile.TemporaryDirectory() as directory:
        run(options, settings, directory)
        noted = [json.loads(path.read_text()) for path in Path(directory).glob("*.json")]
    marks = [[Mark(*mark) for mark in note["marks"]] for note in noted]
    said = {"decoder": options.decoder, "workers": os.environ[WORKERS], "connector": connector_jar().stem}
    report("pyflink", marks, sum(note["counted"] for note in noted), options.records, {**said, **settings})


if __name__ == "__main__":
    main()
