"""Finds the operators and functions of a query in Spark's plans of it, with their ranges in the text.

The parsed plan has the names that the query writes; the analysed one has the types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from rekindle.spark.internals import (
    analysed_plan,
    expression_parts,
    parsed_plan,
    plan_expressions,
    range_in_text,
)
from rekindle.table.sql_calls import Call

#: Where a part of a query begins and ends in its text, and a number of the text.
TextRange: TypeAlias = tuple[int, int, int]
#: Names of what the grammar of SQL makes without the name of a function.
_GRAMMAR = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "EqualTo": "=",
    "UnresolvedExtractValue": "[]",
    "Like": "like",
    "Cast": "cast",
    "Substring": "substring",
    "Overlay": "overlay",
    "TimestampAdd": "timestampadd",
    "TimestampDiff": "timestampdiff",
}


def written_calls(spark: SparkSession, sql: str) -> dict[TextRange, Call]:
    """Return the calls of a query as they are written, by their ranges in the text."""
    found = {}
    for node in plan_expressions(parsed_plan(spark, sql)):
        name = _written_name(node)
        span = None if name is None else range_in_text(node)
        if name is not None and span is not None:
            arguments = tuple(_argument(part, span, sql) for part in expression_parts(node))
            found[span] = Call(name, *span[:2], sql[slice(*span[:2])], arguments)
    return found


def typed_calls(frame: DataFrame, written: dict[TextRange, Call], kinds: Collection[str]) -> Iterator[Call]:
    """Yield the calls of these kinds of Spark's expressions, with the types of their arguments."""
    for node in plan_expressions(analysed_plan(frame)):
        kind = node.nodeName()
        span = range_in_text(node) if kind in kinds else None
        if span in written:
            types = tuple(_type_before_coercion(part, span) for part in expression_parts(node))
            yield replace(written[span], kind=kind, types=types, result=_type(node))


def _written_name(node: Any) -> str | None:
    kind = node.nodeName()
    if kind == "UnresolvedFunction":
        return str(node.nameParts().mkString(".")).lower()
    if kind == "Cast" and node.evalMode().toString() == "TRY":
        return "try_cast"
    return _GRAMMAR.get(kind)


def _argument(part: Any, whole: TextRange, sql: str) -> str:
    span = range_in_text(part)
    # Spark has one TRUE and one FALSE, which stand where they were made first.
    if span is None or span[2] != whole[2] or (part.nodeName() == "Literal" and _type(part) == "BOOLEAN"):
        return str(part.sql())
    return "" if span == whole else sql[slice(*span[:2])]


def _type_before_coercion(part: Any, whole: TextRange) -> str:
    # Spark's own casts stand where the call stands for which they are made.
    while part.nodeName() == "Cast" and range_in_text(part) == whole:
        part = expression_parts(part)[0]
    return _type(part)


def _type(node: Any) -> str:
    return str(node.dataType().sql())
