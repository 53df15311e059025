"""Runs a contender on the broker, checks what it wrote, and measures its processor time."""

from __future__ import annotations

import os
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.kafka.contenders import Contender, Failure, Run
from benchmarks.kafka.processor_time import VARIABLE, ProcessorTime
from benchmarks.kafka.topics import delete, fill, read_counts
from benchmarks.kafka.workload import PARTITIONS
from benchmarks.keyed_count.environments import NotAvailable, python_of
from benchmarks.keyed_count.processes import json_lines
from rekindle.spark.java import ensure_java
from tools.servers.kafka_access import KafkaAccess

OWN = ("rekindle", "bare")


@dataclass
class Runner:
    """Runs contenders, each on a topic with as many records as it gets."""

    broker: KafkaAccess
    records: int
    _filled: set[int] = field(default_factory=set)

    def run(self, contender: Contender) -> Run | Failure:
        """Run a contender once; an error is a result too."""
        records = round(self.records * contender.share) // PARTITIONS * PARTITIONS
        topic = self._topic(records)
        output = None if contender.task == "count" else self._output()
        arguments = ["--bootstrap", self.broker.bootstrap_servers, "--topic", topic, "--records", str(records)]
        arguments += ["--decoder", contender.decoder, *contender.arguments]
        arguments += ["--output", output, "--guarantee", contender.task] if output else []
        try:
            run = self._measured(contender, arguments)
        except NotAvailable as error:
            return Failure(contender, str(error))
        return (output and self._wrong_output(contender, output, records)) or run

    def _topic(self, records: int) -> str:
        name = f"records-{records}"
        if records not in self._filled:
            fill(self.broker, name, records)
            self._filled.add(records)
        return name

    def _output(self) -> str:
        return self.broker.create_topic(f"counts-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)

    def _measured(self, contender: Contender, arguments: list[str]) -> Run:
        interpreter = Path(sys.executable) if contender.family in OWN else python_of(f"{contender.family}-kafka")
        variables = {"JAVA_HOME": os.fspath(ensure_java().path)} if contender.java else {}
        load = os.getloadavg()[0]
        with ProcessorTime() as processor:
            variables[VARIABLE] = processor.mark
            line = json_lines(interpreter, contender.module, arguments, variables=variables)[-1]
        used = processor.between(line["began"], line["began"] + line["seconds"])
        return Run(contender, line["records"], line["seconds"], used, load, line["settings"])

    def _wrong_output(self, contender: Contender, output: str, records: int) -> Failure | None:
        """Read back what was written: nothing may be missing, and nothing failed that could repeat a record."""
        messages, counted = read_counts(self.broker, output)
        delete(self.broker, output)
        if (messages, counted) != (records, records):
            return Failure(
                contender,
                f"it failed: {messages:,} messages came back, and their counts add up to {counted:,}; both should be"
                f" {records:,}",
            )
        return None
