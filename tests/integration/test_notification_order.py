"""A source hears of a complete checkpoint only when every sink behind an exchange has committed it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Types
from rekindle.datastream import SourceFunction, TwoPhaseCommitSinkFunction
from rekindle.datastream.functions import CheckpointListener
from tests.support.environments import checkpointed

RECORDS, COMMIT_S = 60, 0.25


def note(path: str, line: str) -> None:
    """Append a line; small appends of several processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


class Numbers(SourceFunction, CheckpointListener):
    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def run(self, ctx: Any) -> None:
        for number in range(RECORDS):
            ctx.collect(number)
            time.sleep(0.05)

    def cancel(self) -> None:
        pass

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        note(self.path, f"source {checkpoint_id}")


class SlowCommits(TwoPhaseCommitSinkFunction):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = str(path)
        self.checkpoints: list[int] = []

    def begin_transaction(self) -> list[int]:
        return []

    def invoke(  # type: ignore[override]  # as in Flink: the transaction comes first
        self, transaction: list[int], value: int, context: Any
    ) -> None:
        transaction.append(value)

    def pre_commit(self, transaction: list[int]) -> None:
        pass

    def commit(self, transaction: list[int]) -> None:
        pass

    def abort(self, transaction: list[int]) -> None:
        pass

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        time.sleep(COMMIT_S)  # a slow commit: sources that do not wait are faster
        note(self.path, f"sink {checkpoint_id}")


@pytest.mark.parametrize("exchange", [True, False])
def test_sources_wait_for_the_commits_of_all_sinks(spark: Any, tmp_path: Path, exchange: bool) -> None:
    order = tmp_path / "order"
    env = checkpointed(2 if exchange else 1, 400, directory=tmp_path / "checkpoints")
    stream = env.add_source(Numbers(order), type_info=Types.LONG()).set_parallelism(1)
    if exchange:
        stream = stream.key_by(lambda number: number % 10, Types.LONG()).map(lambda number: number, Types.LONG())
    stream.add_sink(SlowCommits(order))
    env.execute("order")

    lines = order.read_text().split("\n")[:-1]
    heard = [int(line.split()[1]) for line in lines if line.startswith("source")]
    assert len(heard) >= 3
    assert heard == sorted(heard)
    for checkpoint in heard:
        before = lines[: lines.index(f"source {checkpoint}")]
        assert before.count(f"sink {checkpoint}") == (2 if exchange else 1), lines
