"""One session: Rekindle, a peer, Rekindle, a peer, …, so that changes of the machine's speed affect all engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

from benchmarks.keyed_count.contenders import TYPED, Contender, Failure, Run

Runner = Callable[[Contender, int], Run | Failure]


@dataclass(frozen=True, slots=True)
class Paired:
    """A peer's run, and Rekindle's runs right before and right after it."""

    run: Run
    neighbours: tuple[Run, ...]

    @property
    def ratio(self) -> float | None:
        """Rekindle's speed in the same minutes, as a multiple of the peer's."""
        if not self.neighbours:
            return None
        return mean(run.records_per_second for run in self.neighbours) / self.run.records_per_second


@dataclass(frozen=True, slots=True)
class Row:
    """All runs of one contender with one number of keys."""

    contender: Contender
    keys: int
    pairs: tuple[Paired, ...]
    failure: str | None = None

    @property
    def median(self) -> float:
        return median(pair.run.records_per_second for pair in self.pairs)

    @property
    def best(self) -> float:
        return max(pair.run.records_per_second for pair in self.pairs)

    @property
    def ratio(self) -> float | None:
        """The median of the ratios of the pairs."""
        ratios = [pair.ratio for pair in self.pairs if pair.ratio is not None]
        return median(ratios) if ratios else None


@dataclass(slots=True)
class Session:
    """Runs all contenders in turn and keeps the outcomes in order."""

    run: Runner
    on_outcome: Callable[[Run | Failure], None]
    quick: bool = False
    """One run of each, and Rekindle only between two families of peers."""
    log: list[Run | Failure] = field(default_factory=list)

    def measure(self, contenders: Sequence[Contender], keys: int) -> None:
        """Run each contender `runs` times, in rounds, with a run of Rekindle before, between and after."""
        rounds = 1 if self.quick else max((contender.runs for contender in contenders), default=0)
        turns = [one for number in range(rounds) for one in contenders if number < one.runs]
        engine_answers = self.once(TYPED, keys)
        for position, contender in enumerate(turns):
            if self.failed(contender, keys):
                continue
            self.once(contender, keys)
            family_goes_on = contender.family in {one.family for one in turns[position + 1 : position + 2]}
            if engine_answers and not (self.quick and family_goes_on):
                self.once(TYPED, keys)

    def once(self, contender: Contender, keys: int) -> bool:
        outcome = self.run(contender, keys)
        self.log.append(outcome)
        self.on_outcome(outcome)
        return isinstance(outcome, Run)

    def failed(self, contender: Contender, keys: int) -> bool:
        return any(
            isinstance(outcome, Failure) and outcome.contender == contender and outcome.keys == keys
            for outcome in self.log
        )

    def rows(self) -> list[Row]:
        return rows_of(self.log)


def rows_of(log: Sequence[Run | Failure]) -> list[Row]:
    """Group a session's outcomes by number of keys and contender, in the order of their first appearance."""
    groups: dict[tuple[int, Contender], list[int]] = {}
    for position, outcome in enumerate(log):
        groups.setdefault((outcome.keys, outcome.contender), []).append(position)
    return [row_of(log, contender, keys, positions) for (keys, contender), positions in groups.items()]


def row_of(log: Sequence[Run | Failure], contender: Contender, keys: int, positions: Sequence[int]) -> Row:
    pairs = []
    failure = None
    for position in positions:
        outcome = log[position]
        if isinstance(outcome, Failure):
            failure = outcome.reason
        else:
            pairs.append(Paired(outcome, neighbours_of(log, position)))
    return Row(contender, keys, tuple(pairs), failure)


def neighbours_of(log: Sequence[Run | Failure], position: int) -> tuple[Run, ...]:
    """Return the nearest runs of Rekindle with as many keys before and after ``position``."""
    this = log[position]
    before = (outcome for outcome in reversed(log[:position]) if is_engine_run(outcome, this.keys))
    after = (outcome for outcome in log[position + 1 :] if is_engine_run(outcome, this.keys))
    found = (next(before, None), next(after, None))
    return tuple(outcome for outcome in found if isinstance(outcome, Run))


def is_engine_run(outcome: Run | Failure, keys: int) -> bool:
    return isinstance(outcome, Run) and outcome.contender == TYPED and outcome.keys == keys
