"""Compares the shape of two JSON documents: the same keys and types, whatever the values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_ID = re.compile(r"[0-9a-f]{32}")
#: Flink writes a number that is none as text.
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
#: Objects that are tables: their keys are values.
_TABLES = (".applications[].jobs", ".execution-config.user-config")


def differences(expected: Any, given: Any, path: str = "") -> Iterator[str]:
    """Every place where the shapes differ. A null on either side fits everything; of lists all entries must fit one."""
    if expected is None or given is None:
        return
    if _kind(expected) != _kind(given):
        yield f"{path}: {_kind(given)} instead of {_kind(expected)}"
    elif isinstance(expected, dict):
        yield from _in_dicts(expected, given, path)
    elif isinstance(expected, list) and expected:
        for item in given:
            found = [list(differences(each, item, f"{path}[]")) for each in expected]
            yield from min(found, key=len)


def _in_dicts(expected: dict[str, Any], given: dict[str, Any], path: str) -> Iterator[str]:
    if path in _TABLES or (expected and all(_ID.fullmatch(key) for key in [*expected, *given])):
        for key, value in given.items():
            yield from differences(next(iter(expected.values()), None), value, f"{path}.<{key}>")
        return
    yield from (f"{path}.{key}: missing" for key in expected.keys() - given.keys())
    yield from (f"{path}.{key}: not in Flink's" for key in given.keys() - expected.keys())
    for key in expected.keys() & given.keys():
        yield from differences(expected[key], given[key], f"{path}.{key}")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float) or value in _NO_NUMBERS:
        return "number"
    kinds: dict[type, str] = {str: "text", list: "list", dict: "object"}
    return kinds[type(value)]
