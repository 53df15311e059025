"""Epochs of played slots, for tests of the Spark job that carries them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rekindle.coordinator.cluster import EpochRun, SlotAddress
from tests.support.fake_slot import FakeSlot

SECRET = b"0123456789abcdef" * 2


Chunks = Iterable[tuple[int, bytes]]


def epoch_run(slots: list[FakeSlot] | list[SlotAddress], stages: int, **changes: Any) -> EpochRun:
    addresses = tuple(slot.address if isinstance(slot, FakeSlot) else slot for slot in slots)
    fields: dict[str, Any] = {
        "job_id": "ab" * 16,
        "job_name": "orders",
        "attempt": 1,
        "epoch": 1,
        "stage_names": tuple(f"chain {stage}" for stage in range(stages)),
        "slots": addresses,
        "secret": SECRET,
        "max_records": 1000,
        "target_ms": 100,
    }
    return EpochRun(**(fields | changes))
