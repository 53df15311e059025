"""Async functions whose answers a test holds back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from rekindle.datastream.async_data_stream import AsyncDataStream
from rekindle.datastream.functions import AsyncFunction
from rekindle.testing import InProcessJob

LONG_S = 30.0
MODES = [AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait]


class Gate:
    """Holds answers back until a test lets them through. Functions find it by name, because they are copied."""

    gates: dict[str, Gate] = {}

    def __init__(self, name: str) -> None:
        self.gates[name] = self
        self.asked: list[Any] = []
        self.changed = threading.Condition()
        self.open = threading.Event()
        self.answered: set[Any] = set()

    def wait_until_asked(self, *values: Any) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: set(values) <= set(self.asked), LONG_S), f"asked: {self.asked}"

    def let(self, *values: Any) -> None:
        self.answered.update(values)


class Gated(AsyncFunction):
    """Asks, and waits until the gate lets the answer through."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def async_invoke(self, value):
        gate = Gate.gates[self.name]
        with gate.changed:
            gate.asked.append(value)
            gate.changed.notify_all()
        while value not in gate.answered and not gate.open.is_set():
            await asyncio.sleep(0.001)
        return [value]


def epochs_until(job: InProcessJob, wanted: Callable[[list[Any]], bool]) -> list[Any]:
    """Run epochs until `wanted` accepts their output. Returns the output."""
    collected: list[Any] = []
    deadline = time.monotonic() + LONG_S
    while not wanted(collected):
        assert time.monotonic() < deadline, f"only {collected} came"
        collected += job.epoch()
    return collected


class Slower(AsyncFunction):
    """Answers the first elements last."""

    async def async_invoke(self, value):
        await asyncio.sleep(0.05 if value < 3 else 0)
        return [value]
