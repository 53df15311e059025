"""A trace of a replay: each record at each operator, each watermark, and each change of the state of one key."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final

from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.errors import InvalidKeyError
from rekindle.graph.nodes import OperatorKind
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.roles import TwoInputs
from rekindle.runtime.operators.sources import SourceOperator
from rekindle.runtime.state.described_states import values_of

_CHARACTERS: Final = 300


def key_from(text: str) -> list[Any]:
    """The keys that a word on the command line may mean: a Python literal, or the word itself.

    >>> key_from("7"), key_from("user-7"), key_from("('eu', 7)")
    ([7, '7'], ['user-7'], [('eu', 7), "('eu', 7)"])
    """
    try:
        literal = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return [text]
    return [literal] if literal == text else [literal, text]


class Trace:
    """Tells `say` of what happens in a task, line by line. `keys` are the keys whose state is watched."""

    def __init__(self, say: Callable[[str], object] = print, keys: Sequence[Any] = ()) -> None:
        self._say = say
        self._keys = keys
        self._operators: list[Operator] = []
        self._known: dict[tuple[str, str], str] = {}
        self._records = 0

    def watch(self, operator: Operator) -> Operator:
        """Watch an operator, before it is connected; operators come from the head of the chain on."""
        self._operators.append(operator)
        if isinstance(operator, SourceOperator):
            return operator
        watched: Any = operator  # whose methods are replaced
        is_first = not any(not isinstance(each, SourceOperator) for each in self._operators[:-1])
        watched.process_batch = self._one_by_one(operator, operator.process_batch, is_first)
        if isinstance(operator, TwoInputs):
            watched.process_batch2 = self._one_by_one(operator, operator.process_batch2, is_first)
        if is_first:
            watched.process_watermark = self._watermarks(operator.process_watermark)
        return operator

    def begin(self) -> None:
        """Look at the state before the first event, without a word."""
        self._known = self._state()

    def _one_by_one(self, operator: Operator, process: Callable[..., None], is_first: bool) -> Callable[..., None]:
        def process_each(records: list[Any], timestamps: list[int] | None) -> None:
            for index, record in enumerate(records):
                time = None if timestamps is None else [timestamps[index]]
                self._tell(operator, record, time, is_first)
                process([record], time)
                self._tell_changes()

        return process_each

    def _tell(self, operator: Operator, record: Any, time: list[int] | None, is_first: bool) -> None:
        if is_first:
            self._records += 1
        number = f"{self._records:>7}" if is_first else " " * 7
        at = f"  @ {time[0]}" if time is not None else ""
        self._say(f"{number}  {operator.name} <- {_shortened(record)}{at}")

    def _watermarks(self, process: Callable[[int], None]) -> Callable[[int], None]:
        def told(watermark: int) -> None:
            self._say(f"{'':7}  watermark {'end' if watermark == MAX_WATERMARK else watermark}")
            process(watermark)
            self._tell_changes()

        return told

    def _tell_changes(self) -> None:
        """Say what has changed in the state of the watched keys."""
        if not self._keys:
            return
        now = self._state()
        for state in sorted(self._known.keys() | now.keys()):
            before, after = self._known.get(state, "-"), now.get(state, "-")
            if before != after:
                self._say(f"{'':7}  {state[0]}, {state[1]}: {before} -> {after}")
        self._known = now

    def _state(self) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for operator in self._operators:
            for label, key in self._places(operator):
                try:
                    values = values_of(operator.context.keyed, key) if operator.context.keyed is not None else {}
                except InvalidKeyError:  # the key belongs to another subtask
                    continue
                for name, value in values.items():
                    found[operator.name, f"{name}[{label}]"] = _shortened(value)
        return found

    def _places(self, operator: Operator) -> list[tuple[str, Any]]:
        """Where the state of the watched keys lies; a window operator has a row for each window of a key."""
        keyed = operator.context.keyed
        if keyed is None:
            return []
        if operator.node.kind is not OperatorKind.WINDOW:
            return [(repr(key), key) for key in self._keys]
        return [(f"{key[0]!r}, window {key[1]}", key) for key in list(keyed.keys()) if key[0] in self._keys]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _CHARACTERS else text[:_CHARACTERS] + "…"
