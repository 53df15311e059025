"""Functions that make expressions, under PyFlink's names."""

from __future__ import annotations

from typing import Any

from rekindle.common.data_types import DataType
from rekindle.table.computed import ColumnValue, LiteralValue
from rekindle.table.expression import Expression, as_expression, literal, quoted
from rekindle.table.statements import spark_text

__all__ = [
    "and_",
    "array",
    "call_sql",
    "col",
    "concat",
    "concat_ws",
    "current_date",
    "current_timestamp",
    "if_then_else",
    "lit",
    "not_",
    "null_of",
    "or_",
    "pi",
    "rand",
    "row",
    "uuid",
]


def col(name: str) -> Expression:
    """Return a column.

    >>> col("word")
    `word` AS `word`
    """
    return Expression(quoted(name), name, computed=ColumnValue(name)) if name != "*" else Expression("*")


def lit(v: Any, data_type: DataType | None = None) -> Expression:
    """Return a value."""
    return Expression(literal(v, data_type), computed=LiteralValue(v) if data_type is None else None)


def call_sql(sql_expression: str) -> Expression:
    """Return an expression that is written in SQL."""
    return Expression(f"({spark_text(sql_expression)})")


def null_of(data_type: DataType) -> Expression:
    """Return null, of a type."""
    return Expression(literal(None, data_type))


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """Return whether all hold."""
    return _joined("AND", predicate0, predicate1, *predicates)


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """Return whether one holds."""
    return _joined("OR", predicate0, predicate1, *predicates)


def not_(expression: Expression) -> Expression:
    """Return whether it does not hold."""
    return ~expression


def if_then_else(condition: Expression, if_true: Any, if_false: Any) -> Expression:
    """Return one of two values."""
    return condition.then(if_true, if_false)


def concat(first: Any, *others: Any) -> Expression:
    """Return texts one after the other."""
    return as_expression(first)._call("concat", *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression:
    """Return texts one after the other, with a text between them."""
    return as_expression(separator)._call("concat_ws", first, *others)


def array(head: Any, *tail: Any) -> Expression:
    """Return a list of values."""
    return as_expression(head)._call("array", *tail)


def row(head: Any, *tail: Any) -> Expression:
    """Return a row of values."""
    return as_expression(head)._call("struct", *tail)


def current_date() -> Expression:
    """Return the date of today."""
    return Expression("current_date()")


def current_timestamp() -> Expression:
    """Return the time of now."""
    return Expression("current_timestamp()")


def uuid() -> Expression:
    """Return a unique text."""
    return Expression("uuid()")


def pi() -> Expression:
    """Return the number pi."""
    return Expression("pi()")


def rand(seed: int | None = None) -> Expression:
    """Return a number from 0 to 1 by chance."""
    return Expression("rand()" if seed is None else f"rand({int(seed)})")


def _joined(operator: str, first: Any, *others: Any) -> Expression:
    joined = as_expression(first)
    for other in others:
        joined = joined._with(other, operator)
    return joined
