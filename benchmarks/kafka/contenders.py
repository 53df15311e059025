"""The contenders: who reads the topic, in which form, and how many of its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Task = Literal["count", "at-least-once", "exactly-once"]


@dataclass(frozen=True, slots=True)
class Contender:
    """One engine in one form."""

    name: str
    family: str
    decoder: str = "msgspec"
    arguments: tuple[str, ...] = ()
    share: float = 1.0
    """The part of the records that it gets: a slow engine would take very long with all."""
    task: Task = "count"
    java: bool = False

    @property
    def module(self) -> str:
        return "benchmarks.kafka.engine" if self.family == "rekindle" else f"benchmarks.kafka.peers.{self.family}"


def rekindle(decoder: str) -> Contender:
    """Rekindle with a counting sink."""
    return Contender("Rekindle", "rekindle", decoder)


def bare(decoder: str) -> Contender:
    """No engine at all."""
    return Contender("bare loops, 2 processes", "bare", decoder)


def engines(decoder: str) -> list[Contender]:
    """The other engines."""
    return [
        Contender("Bytewax, 1 process", "bytewax", decoder, share=0.125),
        Contender("Bytewax, 2 processes", "bytewax", decoder, ("--processes", "2"), share=0.125),
        Contender("Spark, transformWithStateInPandas", "spark", decoder, share=0.125, java=True),
        Contender("PyFlink, process mode", "pyflink", decoder, ("--mode", "process"), share=0.05, java=True),
        Contender("PyFlink, thread mode", "pyflink", decoder, ("--mode", "thread"), share=0.05, java=True),
    ]


def to_kafka(task: Task) -> Contender:
    """Rekindle with Kafka at both ends."""
    return Contender(f"Rekindle, to Kafka {task.replace('-', ' ')}", "rekindle", share=0.5, task=task)


@dataclass(frozen=True, slots=True)
class Run:
    """One timed run, as the contender reported it."""

    contender: Contender
    records: int
    seconds: float
    processor_seconds: float
    load: float
    settings: Mapping[str, object]

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds

    @property
    def processor_us(self) -> float:
        """Microseconds of processor time per record, of all processes of the contender."""
        return self.processor_seconds * 1e6 / self.records


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that gave no result, and why."""

    contender: Contender
    reason: str
