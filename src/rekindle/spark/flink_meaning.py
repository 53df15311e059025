"""Gives a query Flink's meaning: operators and functions that Spark computes otherwise are replaced, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession

from rekindle.errors import GraphError
from rekindle.spark.query_calls import typed_calls, written_calls
from rekindle.table.flink_by_name import BY_NAME, Rule
from rekindle.table.flink_by_type import BY_TYPE
from rekindle.table.sql_calls import Call, rewritten

#: Settings with which Spark reads texts and types as Flink does.
SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.legacy.literal.pickMinimumPrecision": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}


def with_flink_meaning(spark: SparkSession, sql: str, own: Collection[str]) -> tuple[str, DataFrame]:
    """Return a query as Spark is to read it, and its frame.

    `own` are the functions of the user, whose names mean nothing else.
    """
    taken = {name.lower() for name in own}
    rules = {name: rule for name, rule in BY_NAME.items() if name not in taken}
    if rules.keys() & set(re.findall(r"\w+", sql.lower())):
        while texts := _texts(written_calls(spark, sql).values(), lambda call: rules.get(call.name)):
            sql = rewritten(sql, texts)
    while True:
        frame = spark.sql(sql)
        calls = typed_calls(frame, written_calls(spark, sql), BY_TYPE.keys())
        texts = _texts(calls, lambda call: BY_TYPE.get(call.kind))
        if not texts:
            return sql, frame
        sql = rewritten(sql, texts)


def _texts(calls: Iterable[Call], rule_of: Callable[[Call], Rule | None]) -> dict[Call, str]:
    found = {}
    for call in calls:
        rule = None if call.is_done else rule_of(call)
        text = None if rule is None else _applied(rule, call)
        if text is not None:
            found[call] = text
    return found


def _applied(rule: Rule, call: Call) -> str | None:
    try:
        return rule(call)
    except (IndexError, ValueError):  # it takes the arguments that Flink's function has
        raise GraphError(f"{call.name.upper()} has not {len(call.given)} arguments in Flink's SQL.") from None
