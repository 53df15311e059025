"""What an endless or random program prints, as its form: two runs of one program differ, their forms do not."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

_COUNT = re.compile(r"\((\w+),(\d+)\)")
_NULL = type(None).__name__
_CHANGE = re.compile(r"([+-][IUD])\[(\w+), (\d+)\]")


def of_counts(lines: list[str]) -> list[str]:
    """The form of a word count that prints each new count: every word is counted from 1 on, by ones.

    >>> of_counts(["Hello.", "(to,1)", "(be,1)", "(to,2)"])
    ['Hello.', '(word,count): each word from 1 on, by 1']
    >>> of_counts(["(to,1)", "(to,3)"])
    ["(word,count): 'to' has ['1', '3']"]
    """
    others, counts = _found(_COUNT, lines)
    wrong = [
        f"{word!r} has {numbers}"
        for word, numbers in _by_word((word, number) for word, number in counts).items()
        if numbers != [str(number + 1) for number in range(len(numbers))]
    ]
    return [*others, "(word,count): " + ("; ".join(wrong) or "each word from 1 on, by 1")] if counts else others


def of_changes(lines: list[str]) -> list[str]:
    """The form of a word count of tables: every word is inserted with 1, then each count is replaced by the next.

    >>> of_changes(["+I[to, 1]", "+I[be, 1]", "-U[to, 1]", "+U[to, 2]"])
    ['kind[word, count]: each word +I 1, -U 1, +U 2, -U 2 and so on']
    >>> of_changes(["+I[to, 1]", "+U[to, 2]"])
    ["kind[word, count]: 'to' has ['+I 1', '+U 2']"]
    """
    others, changes = _found(_CHANGE, lines)
    wrong = [
        f"{word!r} has {found}"
        for word, found in _by_word((word, f"{kind} {number}") for kind, word, number in changes).items()
        if found != _usual_changes(len(found))
    ]
    usual = "each word +I 1, -U 1, +U 2, -U 2 and so on"
    return [*others, "kind[word, count]: " + ("; ".join(wrong) or usual)] if changes else others


def _usual_changes(count: int) -> list[str]:
    changes = ["+I 1"]
    for number in range(1, count):
        changes += [f"-U {number}", f"+U {number + 1}"]
    return changes[:count]


def of_answers(lines: list[str]) -> list[str]:
    """The form of JSON objects: for each field its types and the shape of its texts.

    A program answers null after a timeout, as any busy machine may have one: null counts if there is nothing else.

    >>> of_answers(['{"id": 7, "text": "0f", "answer": "yes"}', '{"id": -7, "text": "1a", "answer": "yes"}'])
    ['id: int', 'text: 2 hexadecimal digits', 'answer: yes']
    """
    others: list[str] = []
    shapes: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        if not line.startswith("{"):
            others.append(line)
            continue
        for name, value in json.loads(line).items():
            shapes[name].add(_shape(value))
    return [*others, *(f"{name}: {', '.join(sorted(found - {_NULL} or found))}" for name, found in shapes.items())]


def _shape(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch("[0-9a-f]+", value):
        return f"{len(value)} hexadecimal digits"
    return value if isinstance(value, str) else type(value).__name__


def _found(pattern: re.Pattern[str], lines: list[str]) -> tuple[list[str], list[tuple[str, ...]]]:
    """The other lines, and the parts of those of the pattern."""
    others, found = [], []
    for line in lines:
        match = pattern.fullmatch(line)
        if match is None:
            others.append(line)
        else:
            found.append(match.groups())
    return others, found


def _by_word(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = defaultdict(list)
    for word, value in pairs:
        grouped[word].append(value)
    return grouped
