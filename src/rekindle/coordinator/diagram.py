"""Tables of states as Mermaid diagrams: those of `docs/architecture.md` are drawn with this."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


def state_diagram(transitions: Mapping[Enum, frozenset[Enum]]) -> str:
    """The table as a diagram: it begins with the table's first state, and what nothing follows is an end.

    >>> class Door(Enum):
    ...     OPEN = 1
    ...     SHUT = 2
    >>> print(state_diagram({Door.OPEN: frozenset({Door.SHUT}), Door.SHUT: frozenset()}))
    stateDiagram-v2
        [*] --> OPEN
        OPEN --> SHUT
        SHUT --> [*]
    """
    states = list(transitions)
    lines = ["stateDiagram-v2", f"    [*] --> {states[0].name}"]
    for state in states:
        following = sorted(transitions[state], key=states.index)
        lines += [f"    {state.name} --> {each.name}" for each in following]
        if not following:
            lines.append(f"    {state.name} --> [*]")
    return "\n".join(lines)
