"""Whether a program's timestamp assigner reads the time that a source gave to a record. Pure."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any


def reads_record_timestamp(assign: Callable[[Any, int], int]) -> bool:
    """Return False only if the code of a Python function never uses its last parameter.

    >>> reads_record_timestamp(lambda record, timestamp: record["time"])
    False
    >>> reads_record_timestamp(lambda record, timestamp: timestamp + 1)
    True
    """
    function = assign.__func__ if isinstance(assign, MethodType) else assign
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return True
    code = function.__code__
    taken = 3 if isinstance(assign, MethodType) else 2
    has_only_names = code.co_argcount == taken and not code.co_flags & (0x04 | 0x08)  # no *args, no **kwargs
    return not has_only_names or _uses(code, code.co_varnames[taken - 1])


def _uses(code: CodeType, name: str) -> bool:
    if "locals" in code.co_names or "eval" in code.co_names:
        return True
    captured = name in code.co_cellvars
    return captured or any(name in _names(step.argval) for step in dis.get_instructions(code))


def _names(argument: Any) -> tuple[Any, ...]:
    """Newer Pythons load two variables with one instruction."""
    return argument if isinstance(argument, tuple) else (argument,)
