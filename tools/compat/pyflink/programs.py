"""The PyFlink programs that run on both sides, and which lines of their output are compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.compat.pyflink import forms
from tools.compat.pyflink.run_programs import BEGIN, END

_ROOT = Path(__file__).resolve().parents[3]
#: What a real PyFlink printed, one file per program.
RECORDED = _ROOT / "tests" / "data" / "pyflink_programs"
#: Programs of this repository; all others come from PyFlink's wheel.
OWN = _ROOT / "examples" / "pyflink"
_SUBTASK = re.compile(r"^(\w+:)?\d+> ")
#: Lines that PyFlink's own libraries write, and warnings of either side.
_NOISE = re.compile(
    r"Using Any for unsupported type|No module named google|PYFLINK_CYTHON|^WARNING|^\[rekindle\]|^Job '|^$"
)

Compared = Callable[[list[str]], list[str]]


def plain(lines: list[str]) -> list[str]:
    """The lines of the program, without the number of the subtask that printed them."""
    return [_SUBTASK.sub(lambda found: found[1] or "", line) for line in lines if not _NOISE.search(line)]


def in_any_order(lines: list[str]) -> list[str]:
    """The lines sorted, without the number of the subtask that printed them."""
    return sorted(plain(lines))


#: Programs by name, with the lines that are compared.
PROGRAMS: dict[str, Compared] = {
    "datastream/basic_operations": in_any_order,
    "datastream/event_time_timer": in_any_order,
    "datastream/process_json_data": in_any_order,
    "datastream/state_access": in_any_order,
    "datastream/word_count": in_any_order,
    "datastream/windowing/session_with_dynamic_gap_window": in_any_order,
    "datastream/windowing/session_with_gap_window": in_any_order,
    "datastream/windowing/sliding_time_window": in_any_order,
    "datastream/windowing/tumbling_count_window": in_any_order,
    "datastream/windowing/tumbling_time_window": in_any_order,
    "own/fraud_detector": in_any_order,
    "own/ride_sharing": in_any_order,
    "own/web_sessions": in_any_order,
    "table/word_count": in_any_order,
}


@dataclass(frozen=True)
class Endless:
    """How a program is compared that never ends, or whose input is random: by the form of what it prints."""

    form: Compared
    #: So many lines show the form.
    enough: int


#: Programs without an end, by name.
ENDLESS: dict[str, Endless] = {
    "datastream/streaming_word_count": Endless(forms.of_counts, 30),
    "datastream/asyncio/remote_model_inference": Endless(forms.of_answers, 60),
    "table/streaming_word_count": Endless(forms.of_changes, 45),
}


def source_of(name: str, examples: Path) -> Path:
    """The file of a program."""
    folder, _, own = name.partition("own/")
    return OWN / f"{own}.py" if not folder else examples / f"{name}.py"


def outputs_of(text: str) -> dict[str, list[str]]:
    """The lines of each program in the output of `run_programs`, by its path."""
    outputs: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if line.startswith(BEGIN):
            current = outputs.setdefault(line.removeprefix(BEGIN), [])
        elif line.startswith(END):
            current = None
        elif current is not None:
            current.append(line)
    return outputs
