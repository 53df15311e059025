"""The time between completed checkpoints when functions are slow, for each cost of a record and each stage.

    python -m benchmarks.slow_functions                   # all cases, about ten minutes
    python -m benchmarks.slow_functions --costs 250 --stages middle --seconds 20

The promise (I22): after the first two, completions are at most twice the interval plus the time of (parallelism + 1)
records apart. With unaligned checkpoints that also holds when a function becomes slow from one record to the next.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import pairwise

from rekindle.common import Types
from rekindle.common.checkpoint_statistics import CheckpointStatus
from rekindle.datastream import MapFunction, SinkFunction, StreamExecutionEnvironment

PARALLELISM = 2
INTERVAL_MS = 1000
STAGES = ("first", "middle", "last")
#: This cost is a tenth of a millisecond for the first `SUDDEN_AFTER` records, then a second.
SUDDEN = "sudden"
SUDDEN_AFTER = 4000


@dataclass(frozen=True)
class Case:
    """A function with a cost per record, in one of the three stages of a job."""

    stage: str
    cost: str  # milliseconds per record, or `SUDDEN`
    unaligned: bool

    @property
    def slowest_ms(self) -> float:
        """The longest time of a record."""
        return 1000.0 if self.cost == SUDDEN else float(self.cost)

    @property
    def bound_ms(self) -> float:
        """The longest time allowed between two completions."""
        return 2 * INTERVAL_MS + (PARALLELISM + 1) * self.slowest_ms


class Slow(MapFunction):
    """Sleeps for the cost of each record."""

    def __init__(self, cost: str) -> None:
        self._cost = cost
        self._seen = 0

    def map(self, value: int) -> int:
        self._seen += 1
        if self._cost != SUDDEN:
            time.sleep(float(self._cost) / 1000)
        else:
            time.sleep(1.0 if self._seen > SUDDEN_AFTER else 0.0001)
        return value


def build(case: Case) -> StreamExecutionEnvironment:
    """A source, two exchanges, and the slow function in the case's stage."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(PARALLELISM).enable_checkpointing(INTERVAL_MS)
    env.get_checkpoint_config().enable_unaligned_checkpoints(case.unaligned)
    stream = env.from_sequence(1, 10_000_000)
    if case.stage == "first":
        stream = stream.map(Slow(case.cost), Types.LONG())
    stream = stream.key_by(lambda n: n % 1000, Types.LONG()).map(
        Slow(case.cost) if case.stage == "middle" else lambda n: n, Types.LONG()
    )
    stream = stream.rebalance().map(Slow(case.cost) if case.stage == "last" else lambda n: n, Types.LONG())
    stream.add_sink(Nothing())
    return env


class Nothing(SinkFunction):
    """A sink that drops its records."""

    def invoke(self, value: int, context: object) -> None:
        """Drop the record."""


def gaps_ms(case: Case, seconds: float) -> list[float]:
    """The times between completed checkpoints of a job that runs for `seconds`."""
    client = build(case).execute_async(f"slow {case.stage} {case.cost}")
    time.sleep(seconds)
    history = client.get_checkpoint_statistics().history
    client.cancel().result()
    completed = sorted(
        each.trigger_timestamp_ms + each.end_to_end_duration_ms
        for each in history
        if each.status is CheckpointStatus.COMPLETED
    )
    return [later - earlier for earlier, later in pairwise(completed)]


def main() -> None:
    """Run the cases and print a row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costs", nargs="*", default=["1", "10", "250", "2000", SUDDEN], help="ms per record")
    parser.add_argument("--stages", nargs="*", default=STAGES, choices=STAGES)
    parser.add_argument("--modes", nargs="*", default=["aligned", "unaligned"], choices=["aligned", "unaligned"])
    parser.add_argument("--seconds", type=float, default=0.0, help="of each case; by default by its cost")
    arguments = parser.parse_args()
    print(f"{'stage':8}{'ms/record':>10}{'mode':>11}{'completed':>11}{'longest gap':>13}{'allowed':>9}")
    for mode in arguments.modes:
        for cost in arguments.costs:
            if cost == SUDDEN and mode == "aligned":
                continue  # only unaligned checkpoints have a bound there
            for stage in arguments.stages:
                case = Case(stage, cost, mode == "unaligned")
                gaps = gaps_ms(case, arguments.seconds or 15 + 15 * case.slowest_ms / 1000)
                longest = max(gaps[2:], default=float("inf"))
                verdict = "" if longest <= case.bound_ms else "   too long"
                times = f"{longest:>10.0f} ms{case.bound_ms:>6.0f} ms{verdict}"
                print(f"{stage:8}{cost:>10}{mode:>11}{len(gaps) + 1:>11}{times}", flush=True)


if __name__ == "__main__":
    main()
