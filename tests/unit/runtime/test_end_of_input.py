"""The end of a task's input: the table of states against the flags that it replaced, for every order of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import hypothesis.strategies as st
import pytest
from hypothesis import given

from rekindle.runtime.end_of_input import TABLE, TRANSITIONS, EndAction, EndEvent, EndOfInput, EndState

OPERATORS = (0, 1, 2)
RESTORES = (EndEvent.RESTORED_ENDED, EndEvent.RESTORED_PARTLY_ENDED, EndEvent.RESTORED_FINISHED)


@dataclass
class Flags:
    """The same decisions as independent flags, as `Task` had them before there was a table."""

    is_source: bool
    finished: bool = False
    input_ended: bool = False
    ended_before: bool = False
    not_ended: set[int] = field(default_factory=set)

    def restore(self, not_ended: set[int]) -> None:
        self.ended_before, self.not_ended = True, not_ended
        self.finished = not not_ended and not self.is_source

    def end_input(self) -> tuple[EndAction, set[int]]:
        if self.finished:
            return EndAction.RESEND_END, self.resent()
        if self.input_ended:
            return EndAction.NONE, set()
        self.input_ended = True
        if not self.ended_before:
            return EndAction.FINISH_OPERATORS, set()
        if self.is_source:
            self.finished = not self.not_ended
        return EndAction.RESEND_END, self.resent()

    def resent(self) -> set[int]:
        return {each for each in OPERATORS if self.finished or each not in self.not_ended}

    def epoch_ended(self, held_before: bool, held_now: bool) -> None:
        self.finished = self.finished or ((held_before or self.input_ended) and not held_now)


def resent(end: EndOfInput, action: EndAction) -> set[int]:
    return {each for each in OPERATORS if end.resends(each)} if action is EndAction.RESEND_END else set()


@given(
    st.booleans(),
    st.none() | st.sets(st.sampled_from(OPERATORS)),
    st.lists(st.just("end") | st.tuples(st.booleans(), st.booleans()), max_size=12),
)
def test_the_table_decides_as_the_flags_did(
    is_source: bool, not_ended: set[int] | None, events: list[str | tuple[bool, bool]]
) -> None:
    end, flags = EndOfInput(), Flags(is_source)
    if not_ended is not None:
        end.restored(is_source, not_ended)
        flags.restore(set(not_ended))
    assert end.ended_before == flags.ended_before
    for event in events:
        if isinstance(event, tuple):
            end.epoch_ended(*event)
            flags.epoch_ended(*event)
        else:
            action = end.on(EndEvent.INPUT_ENDED)
            assert (action, resent(end, action)) == flags.end_input()
        assert end.finished == flags.finished


@given(st.lists(st.sampled_from([event for event in EndEvent if event not in RESTORES]), max_size=20))
def test_operators_finish_at_most_once_and_a_finished_task_stays_finished(events: list[EndEvent]) -> None:
    end, actions = EndOfInput(), []
    for event in events:
        was_finished = end.finished
        actions.append(end.on(event))
        assert end.finished or not was_finished
        assert actions[-1] is not EndAction.FINISH_OPERATORS or not was_finished
    assert actions.count(EndAction.FINISH_OPERATORS) <= 1


@pytest.mark.parametrize(("state", "event"), list(product(EndState, EndEvent)))
def test_the_table_has_every_pair_but_a_restore_of_a_task_that_runs(state: EndState, event: EndEvent) -> None:
    assert ((state, event) in TABLE) == (event not in RESTORES or state is EndState.OPEN)


def test_every_state_can_be_reached_and_leads_to_finished() -> None:
    def reachable(start: EndState) -> set[EndState]:
        found, waiting = {start}, [start]
        while waiting:
            new = TRANSITIONS[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    assert reachable(EndState.OPEN) == set(EndState)
    assert all(EndState.FINISHED in reachable(state) for state in EndState)
    assert TRANSITIONS[EndState.FINISHED] == frozenset()
