"""Finds out whether anything in a job reads the timestamps that a source gives to its records. Pure.

To read a message's timestamp, and to carry it along, costs a Kafka source a sixth of its time. Where it is not certain
that nothing reads timestamps, the source gives them.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from types import CodeType, FunctionType, MethodType
from typing import Any

from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.graph.nodes import OperatorNode, StreamEdge

#: Operators whose functions see records and no timestamps.
_BLIND = frozenset(
    {
        OperatorKind.MAP,
        OperatorKind.FLAT_MAP,
        OperatorKind.FILTER,
        OperatorKind.REDUCE,
        OperatorKind.CO_MAP,
        OperatorKind.CO_FLAT_MAP,
        OperatorKind.COLLECT,
    }
)
_PROCESS = frozenset({OperatorKind.PROCESS, OperatorKind.KEYED_PROCESS})
#: With these a function may get at a variable without an instruction that names it.
_LOOKS_AROUND = frozenset({"locals", "eval", "exec", "vars", "_getframe"})
_VARIABLE_ARGUMENTS = 0x04 | 0x08  # *args, **kwargs


def source_timestamps_are_read(source: int, nodes: Sequence[OperatorNode], edges: Iterable[StreamEdge]) -> bool:
    """Return False only if it is certain that no operator after a source reads its records' timestamps."""
    readers: dict[int, list[int]] = {}
    for edge in edges:
        readers.setdefault(edge.source, []).append(edge.target)
    waiting, seen = list(readers.get(source, ())), set[int]()
    while waiting:
        node = nodes[waiting.pop()]
        if node.id in seen:
            continue
        seen.add(node.id)
        if _reads(node):
            return True
        if not _replaces(node):
            waiting += readers.get(node.id, ())
    return False


def _reads(node: OperatorNode) -> bool:
    if node.kind is OperatorKind.TIMESTAMPS:
        assigner = node.function.timestamp_assigner
        if assigner is None:
            return _makes_watermarks(node.function)
        return reads_record_timestamp(getattr(assigner, "extract_timestamp", assigner))
    if node.kind in _PROCESS:
        return reads_element_timestamp(getattr(node.function, "process_element", None))
    return node.kind not in _BLIND


def _replaces(node: OperatorNode) -> bool:
    return node.kind is OperatorKind.TIMESTAMPS and node.function.timestamp_assigner is not None


def _makes_watermarks(strategy: WatermarkStrategy) -> bool:
    return strategy.kind != "none"


def reads_record_timestamp(assign: Callable[[Any, int], int]) -> bool:
    """Return False only if the code of a Python function never uses its last parameter.

    >>> reads_record_timestamp(lambda record, timestamp: record["time"])
    False
    >>> reads_record_timestamp(lambda record, timestamp: timestamp + 1)
    True
    """
    code = _two_parameter_code(assign)
    return code is None or any(_names(step, _last_parameter(code)) for step in dis.get_instructions(code))


def reads_element_timestamp(process_element: Any) -> bool:
    """Return False only if a function's code never calls `timestamp()` of its last parameter, nor hands that on.

    >>> def count(value, ctx): return ctx.get_current_key(), 1
    >>> def time(value, ctx): return ctx.timestamp()
    >>> def unknown(value, ctx): return helper(ctx)
    >>> [reads_element_timestamp(each) for each in (count, time, unknown)]
    [False, True, True]
    """
    code = _two_parameter_code(process_element)
    if code is None:
        return True
    context = _last_parameter(code)
    steps = list(dis.get_instructions(code))
    return any(_names(step, context) and not _asks_for_other(step, then) for step, then in pairwise(steps))


def _asks_for_other(step: dis.Instruction, then: dis.Instruction) -> bool:
    """Whether an instruction loads one variable only for one of its attributes, which is not `timestamp`."""
    return (
        isinstance(step.argval, str)
        and step.opname.startswith("LOAD_FAST")
        and then.opname in ("LOAD_METHOD", "LOAD_ATTR")
        and then.argval != "timestamp"
    )


def _two_parameter_code(function: Any) -> CodeType | None:
    """The code of a Python function or method with exactly two parameters, whose variables only instructions read."""
    plain = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(plain, FunctionType) or hasattr(plain, "__wrapped__"):
        return None
    code = plain.__code__
    taken = 3 if isinstance(function, MethodType) else 2
    fits = code.co_argcount == taken and not code.co_kwonlyargcount and not code.co_flags & _VARIABLE_ARGUMENTS
    if not fits or _last_parameter(code) in code.co_cellvars or not _LOOKS_AROUND.isdisjoint(code.co_names):
        return None
    return code


def _last_parameter(code: CodeType) -> str:
    return code.co_varnames[code.co_argcount - 1]


def _names(step: dis.Instruction, variable: str) -> bool:
    """Whether an instruction names a variable; newer Pythons load two variables with one instruction."""
    return step.argval == variable or (isinstance(step.argval, tuple) and variable in step.argval)
