"""Rekindle, a peer, Rekindle, a peer, …, Rekindle: each peer's run beside those right before and right after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TypeVar

from benchmarks.keyed_count.contenders import Contender, Failure, Run

AnyContender = TypeVar("AnyContender", bound=Contender)


@dataclass(frozen=True, slots=True)
class Line:
    """A peer's run, and Rekindle's speed right before and right after it as a multiple of the peer's."""

    outcome: Run | Failure
    ratio: float | None


def take_turns(
    engine: AnyContender,
    peers: Sequence[AnyContender],
    run: Callable[[AnyContender], Run | Failure],
    on_outcome: Callable[[Run | Failure], None],
) -> tuple[list[Run], list[Line]]:
    """Run everyone in turn; return the engine's runs, and the peers' with their ratios."""
    own: list[Run | Failure] = []
    outcomes: list[Run | Failure] = []
    for contender in [engine, *(each for peer in peers for each in (peer, engine))]:
        outcome = run(contender)
        on_outcome(outcome)
        (own if contender is engine else outcomes).append(outcome)
    lines = []
    for place, outcome in enumerate(outcomes):
        around = [each.records_per_second for each in own[place : place + 2] if isinstance(each, Run)]
        ratio = mean(around) / outcome.records_per_second if around and isinstance(outcome, Run) else None
        lines.append(Line(outcome, ratio))
    return [each for each in own if isinstance(each, Run)], lines
