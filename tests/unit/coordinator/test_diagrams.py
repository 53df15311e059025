"""The diagrams of the architecture page are generated from the coordinator's tables of transitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from rekindle.coordinator.checkpoints import types as checkpoint_types
from rekindle.coordinator.lifecycle import ATTEMPT_TRANSITIONS, JOB_TRANSITIONS, state_diagram
from rekindle.runtime import end_of_input

PAGE = Path(__file__).resolve().parents[3] / "docs" / "architecture.md"
FENCE = re.compile(r"```mermaid\n(?P<diagram>.*?)\n```", re.DOTALL)


LIVES: dict[str, Mapping[Any, frozenset[Any]]] = {
    "a job": JOB_TRANSITIONS,
    "an attempt": ATTEMPT_TRANSITIONS,
    "a checkpoint": checkpoint_types.TRANSITIONS,
    "the end of a task's input": end_of_input.TRANSITIONS,
}


@pytest.mark.parametrize("transitions", LIVES.values(), ids=LIVES.keys())
def test_the_page_shows_the_table_as_it_is(transitions: Mapping[Enum, frozenset[Enum]]) -> None:
    shown = [fence["diagram"] for fence in FENCE.finditer(PAGE.read_text(encoding="utf-8"))]
    drawn = state_diagram(transitions)
    assert drawn in shown, f"docs/architecture.md shows another life; the table's is:\n```mermaid\n{drawn}\n```"


def test_the_page_shows_no_diagram_without_a_table() -> None:
    shown = [fence["diagram"] for fence in FENCE.finditer(PAGE.read_text(encoding="utf-8"))]
    assert shown == [state_diagram(each) for each in LIVES.values()]
