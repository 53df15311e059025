"""Finds the operators and functions of a query in Spark's plans of it, with the places in the text where they stand.

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
    place_in_text,
    plan_expressions,
)
from rekindle.table.sql_calls import Call

#: Where a part of a query begins and ends in its text, and a number of the text.
Place: TypeAlias = tuple[int, int, int]
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


def written_calls(spark: SparkSession, sql: str) -> dict[Place, Call]:
    """Return the calls of a query as they are written, by their places."""
    found = {}
    for node in plan_expressions(parsed_plan(spark, sql)):
        name = _written_name(node)
        place = None if name is None else place_in_text(node)
        if name is not None and place is not None:
            arguments = tuple(_argument(part, place, sql) for part in expression_parts(node))
            found[place] = Call(name, *place[:2], sql[slice(*place[:2])], arguments)
    return found


def typed_calls(frame: DataFrame, written: dict[Place, Call], kinds: Collection[str]) -> Iterator[Call]:
    """Yield the calls of these kinds of Spark's expressions, with the types of their arguments."""
    for node in plan_expressions(analysed_plan(frame)):
        kind = node.nodeName()
        place = place_in_text(node) if kind in kinds else None
        if place in written:
            types = tuple(_type_before_coercion(part, place) for part in expression_parts(node))
            yield replace(written[place], kind=kind, types=types, result=_type(node))


def _written_name(node: Any) -> str | None:
    kind = node.nodeName()
    if kind == "UnresolvedFunction":
        return str(node.nameParts().mkString(".")).lower()
    if kind == "Cast" and node.evalMode().toString() == "TRY":
        return "try_cast"
    return _GRAMMAR.get(kind)


def _argument(part: Any, whole: Place, sql: str) -> str:
    place = place_in_text(part)
    # Spark has one TRUE and one FALSE, which stand where they were made first.
    if place is None or place[2] != whole[2] or (part.nodeName() == "Literal" and _type(part) == "BOOLEAN"):
        return str(part.sql())
    return "" if place == whole else sql[slice(*place[:2])]


def _type_before_coercion(part: Any, whole: Place) -> str:
    # Spark's own casts stand where the call stands for which they are made.
    while part.nodeName() == "Cast" and place_in_text(part) == whole:
        part = expression_parts(part)[0]
    return _type(part)


def _type(node: Any) -> str:
    return str(node.dataType().sql())
