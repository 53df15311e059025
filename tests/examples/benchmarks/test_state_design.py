"""The benchmark of the design of state measures what it says."""

from __future__ import annotations

import pytest

from benchmarks.state_design import BACKENDS, CLICKS, EPOCH_MS, FourStates, OneState, Visits, measured

RECORDS = 400


@pytest.mark.parametrize("backend", BACKENDS)
def test_state_with_a_time_to_live_stays_small(backend: str) -> None:
    sizes = [
        measured(Visits(lives_ms), lambda number: number // CLICKS, RECORDS, backend).state_bytes
        for lives_ms in (None, 2 * EPOCH_MS)
    ]
    assert sizes[1] < sizes[0] / 2


def test_four_states_hold_what_one_holds() -> None:
    one, four = (measured(function, lambda n: n % 50, RECORDS, "hashmap") for function in (OneState(), FourStates()))
    assert one.state_bytes > four.state_bytes > 50 * len("page 1")
    assert one.microseconds > 0
