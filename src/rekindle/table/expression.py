"""`Expression`: a part of a query, as the text that Spark's SQL reads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rekindle.common.data_types import CharType, DataType, LocalZonedTimestampType, NullType, TimestampType
from rekindle.errors import GraphError
from rekindle.table.computed import Computed, LiteralValue
from rekindle.table.sql_calls import spark, time_type

if TYPE_CHECKING:
    from rekindle.table.udf import QueryFunction

_NO_FUNCTIONS: Mapping[str, Any] = MappingProxyType({})


class Expression:
    """A column, a literal, or what is computed of them.

    >>> from rekindle.table.expressions import col
    >>> ((col("a") + 1) * col("b")).alias("c").sql
    '((`a` + 1) * `b`)'
    """

    def __init__(
        self,
        sql: str,
        name: str | None = None,
        *,
        is_aggregate: bool = False,
        functions: Mapping[str, QueryFunction] = _NO_FUNCTIONS,
        computed: Computed | None = None,
        aggregate: tuple[str, Expression] | None = None,
    ) -> None:
        self.sql = sql
        self.name = name
        self.is_aggregate = is_aggregate
        self.functions = functions
        #: The same expression without SQL; None if only SQL can compute it.
        self.computed = computed
        #: The function and its argument if the whole expression is one aggregate.
        self.aggregate = aggregate

    def __repr__(self) -> str:
        return self.sql if self.name is None else f"{self.sql} AS `{self.name}`"

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise ValueError("An expression has no truth here: write & for and, | for or, ~ for not, with parentheses.")

    # -- operators ----------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        return self._with(other, "+")

    def __radd__(self, other: Any) -> Expression:
        return as_expression(other)._with(self, "+")

    def __sub__(self, other: Any) -> Expression:
        return self._with(other, "-")

    def __rsub__(self, other: Any) -> Expression:
        return as_expression(other)._with(self, "-")

    def __mul__(self, other: Any) -> Expression:
        return self._with(other, "*")

    def __rmul__(self, other: Any) -> Expression:
        return as_expression(other)._with(self, "*")

    def __truediv__(self, other: Any) -> Expression:
        return self._with(other, "/")

    def __mod__(self, other: Any) -> Expression:
        return self._with(other, "%")

    def __pow__(self, other: Any) -> Expression:
        return self._call("power", other)

    def __neg__(self) -> Expression:
        return self._derived(f"(-{self.sql})")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._with(other, "=")

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._with(other, "<>")

    def __lt__(self, other: Any) -> Expression:
        return self._with(other, "<")

    def __le__(self, other: Any) -> Expression:
        return self._with(other, "<=")

    def __gt__(self, other: Any) -> Expression:
        return self._with(other, ">")

    def __ge__(self, other: Any) -> Expression:
        return self._with(other, ">=")

    def __and__(self, other: Any) -> Expression:
        return self._with(other, "AND")

    def __or__(self, other: Any) -> Expression:
        return self._with(other, "OR")

    def __invert__(self) -> Expression:
        return self._derived(f"(NOT {self.sql})")

    # -- names and types ----------------------------------------------------------------------------------------------

    def alias(self, name: str, *extra_names: str) -> Expression:
        """Return the same expression under a name."""
        if extra_names:
            raise GraphError("alias() of an expression takes one name.")
        return Expression(
            self.sql,
            name,
            is_aggregate=self.is_aggregate,
            functions=self.functions,
            computed=self.computed,
            aggregate=self.aggregate,
        )

    def cast(self, data_type: DataType) -> Expression:
        """Return the value as another type."""
        return self._derived(f"CAST({self.sql} AS {_cast_name(data_type)})")

    def try_cast(self, data_type: DataType) -> Expression:
        """Return the value as another type, or null if it is no value of that type."""
        return self._derived(f"TRY_CAST({self.sql} AS {_cast_name(data_type)})")

    @property
    def asc(self) -> Expression:
        """The ascending order."""
        return self._derived(f"{self.sql} ASC")

    @property
    def desc(self) -> Expression:
        """The descending order."""
        return self._derived(f"{self.sql} DESC")

    # -- aggregates ---------------------------------------------------------------------------------------------------

    @property
    def count(self) -> Expression:
        """The number of values."""
        return self._aggregate("count")

    @property
    def sum(self) -> Expression:
        """The sum of the values."""
        return self._aggregate("sum")

    @property
    def sum0(self) -> Expression:
        """The sum of the values, 0 when there is none."""
        return self._aggregate("sum")._call("coalesce", 0)

    @property
    def min(self) -> Expression:
        """The least value."""
        return self._aggregate("min")

    @property
    def max(self) -> Expression:
        """The greatest value."""
        return self._aggregate("max")

    @property
    def avg(self) -> Expression:
        """The average of the values."""
        return self._aggregate("avg")

    @property
    def distinct(self) -> Expression:
        """Each value once, in an aggregate."""
        return self._derived(f"DISTINCT {self.sql}")

    # -- values -------------------------------------------------------------------------------------------------------

    @property
    def is_null(self) -> Expression:
        """Whether there is no value."""
        return self._derived(f"({self.sql} IS NULL)")

    @property
    def is_not_null(self) -> Expression:
        """Whether there is a value."""
        return self._derived(f"({self.sql} IS NOT NULL)")

    @property
    def is_true(self) -> Expression:
        """Whether it holds; null does not."""
        return self._derived(f"({self.sql} IS TRUE)")

    def log(self, base: Any = None) -> Expression:
        """Return the logarithm, the natural one without a base."""
        return self._call("ln") if base is None else as_expression(base)._call("log", self)

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Whether the value is between two others, both included."""
        return self._with(lower_bound, ">=")._with(self._with(upper_bound, "<="), "AND")

    def in_(self, first_element: Any, *remaining_elements: Any) -> Expression:
        """Whether the value is one of these."""
        values = [as_expression(each) for each in (first_element, *remaining_elements)]
        return self._derived(f"({self.sql} IN ({', '.join(each.sql for each in values)}))")

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """Return one of two values."""
        return self._call("if", if_true, if_false)

    def if_null(self, null_replacement: Any) -> Expression:
        """Return the value, or another one in place of null."""
        return self._call("coalesce", null_replacement)

    def get(self, name_or_index: str | int) -> Expression:
        """Return a field of a row."""
        if isinstance(name_or_index, int):
            raise GraphError("get() takes the name of a field here, not its number.")
        return self._derived(f"{self.sql}.{quoted(name_or_index)}")

    def at(self, index: Any) -> Expression:
        """Return an element of an array, from 1 on, or a value of a map by its key."""
        return self._call("try_element_at", index)

    def like(self, pattern: str) -> Expression:
        """Whether the text has the form of the pattern, with `%` and `_`."""
        return self._with(pattern, "LIKE")

    def substring(self, begin_index: Any, length: Any = None) -> Expression:
        """Return a part of the text, from 1 on."""
        return self._call("substring", begin_index, *(() if length is None else (length,)))

    def json_value(self, path: str, returning_type: DataType | None = None, *_: Any) -> Expression:
        """Return the value at a path of a JSON text; null if it is an object or an array."""
        bare = path.removeprefix("lax").lstrip()
        if not bare.startswith("$"):
            raise GraphError(f"json_value() takes a path that begins with '$' or 'lax $', not '{path}'.")
        at = literal(bare)
        parsed = spark("try_parse_json", self.sql)
        kind = f"schema_of_variant(try_variant_get({parsed}, {at}, 'variant'))"
        nested = f"rlike({kind}, '^(OBJECT|ARRAY)')"
        found = self._derived(f"IF({nested}, NULL, get_json_object({self.sql}, {at}))")
        return found if returning_type is None else found.cast(returning_type)

    def __getattr__(self, name: str) -> Any:
        if name in _PROPERTIES:
            return self._call(_PROPERTIES[name])
        if name in _METHODS:
            return lambda *arguments: self._call(_METHODS[name], *arguments)
        if name.startswith("_"):
            raise AttributeError(name)
        raise GraphError(f"Expressions have no '{name}' here: write it in SQL with sql_query().")

    # -- parts --------------------------------------------------------------------------------------------------------

    def _with(self, other: Any, operator: str) -> Expression:
        right = as_expression(other)
        return self._derived(f"({self.sql} {operator} {right.sql})", right)

    def _call(self, function: str, *arguments: Any) -> Expression:
        parts = [as_expression(argument) for argument in arguments]
        return self._derived(f"{function}({', '.join([self.sql, *(part.sql for part in parts)])})", *parts)

    def _aggregate(self, function: str) -> Expression:
        # DISTINCT is no value of its own.
        whole = None if self.is_aggregate or self.sql.startswith("DISTINCT ") else (function, self)
        sql = f"{function}({self.sql})"
        return Expression(sql, None, is_aggregate=True, functions=self.functions, aggregate=whole)

    def _derived(self, sql: str, *others: Expression) -> Expression:
        functions = dict(self.functions)
        for other in others:
            functions.update(other.functions)
        aggregate = self.is_aggregate or any(other.is_aggregate for other in others)
        return Expression(sql, None, is_aggregate=aggregate, functions=functions)


#: Flink's properties and methods that Spark's SQL has as functions of the same meaning.
_PROPERTIES = {
    "abs": "abs",
    "floor": "floor",
    "ceil": "ceil",
    "exp": "exp",
    "ln": "ln",
    "log10": "log10",
    "log2": "log2",
    "sqrt": "sqrt",
    "sign": "sign",
    "upper_case": "upper",
    "lower_case": "lower",
    "init_cap": "initcap",
    "char_length": "char_length",
    "trim": "trim",
    "trim_leading": "ltrim",
    "trim_trailing": "rtrim",
    "ltrim": "ltrim",
    "rtrim": "rtrim",
    "reverse": "reverse",
    "cardinality": "size",
    "array_distinct": "array_distinct",
    "map_keys": "map_keys",
    "map_values": "map_values",
    "md5": "md5",
    "sha1": "sha1",
    "to_date": "to_date",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
}
_METHODS = {
    "power": "power",
    "mod": "mod",
    "round": "round",
    "repeat": "repeat",
    "lpad": "lpad",
    "rpad": "rpad",
    "replace": "replace",
    "regexp_replace": "regexp_replace",
    "regexp_extract": "regexp_extract",
    "split": "split",
    "left": "left",
    "right": "right",
    "array_contains": "array_contains",
    "instr": "instr",
    "starts_with": "startswith",
    "ends_with": "endswith",
}


def as_expression(value: Any) -> Expression:
    """Return an expression as it is, and a Python value as a literal."""
    return value if isinstance(value, Expression) else Expression(literal(value), computed=LiteralValue(value))


def literal(value: Any, data_type: DataType | None = None) -> str:
    """Return a Python value as SQL.

    >>> literal("it's"), literal(None), literal(2.5)
    ("'it\\\\'s'", 'NULL', '2.5D')
    """
    if data_type is not None and not isinstance(data_type, NullType):
        return f"CAST({literal(value)} AS {_cast_name(data_type)})"
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return f"{value!r}D"
        case Decimal():
            return f"{value:f}BD"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
        case dt.date():
            return f"DATE'{value.isoformat()}'"
    raise GraphError(f"{value!r} is no literal of SQL.")


def _cast_name(data_type: DataType) -> str:
    """Return a type as casts name it: texts and times keep the size that Spark's types have not."""
    match data_type:
        case CharType():
            return data_type.sql_name()
        case TimestampType() | LocalZonedTimestampType():
            return time_type(isinstance(data_type, LocalZonedTimestampType), data_type.precision)
    return data_type.spark_name()


def quoted(name: str) -> str:
    """Return a name in SQL's quotes.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
