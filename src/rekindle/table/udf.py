"""Python functions in queries: `udf` for one value per row, `udtf` for any number of rows per row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NoReturn

from rekindle.common.data_types import DataType, RowField, RowType
from rekindle.errors import GraphError
from rekindle.table.computed import CallValue
from rekindle.table.expression import Expression, as_expression
from rekindle.table.sql_types import parse_type

__all__ = [
    "AggregateFunction",
    "FunctionContext",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]

_numbers = count()


class FunctionContext:
    """The context that a function's `open` gets."""

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return the default: functions of queries have no parameters of the job here."""
        return default_value


class UserDefinedFunction:
    """The base of functions that are classes with an `eval` method."""

    def open(self, function_context: FunctionContext) -> None:
        """Prepare for the first row, in each process."""

    def close(self) -> None:
        """Never called here: Spark ends its processes without a word."""

    def is_deterministic(self) -> bool:
        """Return whether equal arguments give equal results."""
        return True

    def eval(self, *args: Any) -> Any:
        """Return the result for the arguments."""
        raise NotImplementedError


class ScalarFunction(UserDefinedFunction):
    """A function from values to a value."""


class TableFunction(UserDefinedFunction):
    """A function from values to any number of rows."""


class AggregateFunction(UserDefinedFunction):
    """A name for programs that import it: `udaf` refuses it."""


class TableAggregateFunction(UserDefinedFunction):
    """A name for programs that import it: `udtaf` refuses it."""


@dataclass(frozen=True)
class QueryFunction:
    """A Python function with its SQL name and its type. Call it with columns to use it in a query."""

    call: Any
    result_type: DataType
    name: str
    is_table_function: bool = False
    deterministic: bool = True
    aliases: tuple[str, ...] = field(default=())

    def __call__(self, *arguments: Any) -> Expression:
        """Return the expression of a call."""
        if self.is_table_function:
            raise GraphError(f"'{self.name}' is a table function: use it in flat_map(), or in SQL with LATERAL.")
        parts = [as_expression(argument) for argument in arguments]
        functions = {self.name: self}
        for part in parts:
            functions.update(part.functions)
        known = [part.computed for part in parts if part.computed is not None]
        computed = CallValue(self.function(), tuple(known)) if len(known) == len(parts) else None
        sql = f"`{self.name}`({', '.join(part.sql for part in parts)})"
        return Expression(sql, None, functions=functions, computed=computed)

    def alias(self, *names: str) -> QueryFunction:
        """Return the same function with names for the columns of its result."""
        return replace(self, aliases=names)

    def function(self) -> Callable[..., Any]:
        """Return the plain function."""
        return _Evaluated(self.call) if isinstance(self.call, UserDefinedFunction) else self.call

    @property
    def row_type(self) -> RowType:
        """The columns of the result, under their aliases."""
        row_type = self.result_type
        if not isinstance(row_type, RowType):
            row_type = RowType([RowField("f0", row_type)])
        if not self.aliases:
            return row_type
        if len(self.aliases) != len(row_type):
            raise GraphError(f"'{self.name}' gives {len(row_type)} columns, not {len(self.aliases)}.")
        types = row_type.field_types()
        return RowType([RowField(name, part) for name, part in zip(self.aliases, types, strict=True)])


class _Evaluated:
    """Calls `eval`, after `open` in each process."""

    def __init__(self, function: UserDefinedFunction) -> None:
        self._function = function
        self._is_open = False

    def __call__(self, *arguments: Any) -> Any:
        if not self._is_open:
            self._function.open(FunctionContext())
            self._is_open = True
        return self._function.eval(*arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": self._function, "_is_open": False}


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
    udf_type: str | None = None,
) -> Any:
    """Make a function for queries of a Python function, or of a `ScalarFunction`.

    >>> from rekindle.common.data_types import DataTypes
    >>> @udf(result_type=DataTypes.BIGINT())
    ... def length(text):
    ...     return len(text)
    >>> length.result_type
    BigIntType(true)
    """
    if (udf_type or func_type) != "general":
        raise GraphError(f"udf(): functions of the kind '{udf_type or func_type}' are not here, only 'general' ones.")
    if result_type is None:
        raise GraphError("udf() needs the result_type of the function, such as DataTypes.BIGINT().")
    declared = parse_type(result_type) if isinstance(result_type, str) else result_type

    def make(function: Any) -> QueryFunction:
        return QueryFunction(
            _checked("udf()", function), declared, _name(function, name), False, deterministic is not False
        )

    return make if f is None else make(f)


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: DataType | str | Sequence[DataType | str] | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Make a function for `flat_map` of a Python function that yields rows, or of a `TableFunction`."""
    if result_types is None:
        raise GraphError("udtf() needs the result_types of the function, such as [DataTypes.STRING()].")
    given = [result_types] if isinstance(result_types, DataType | str) else list(result_types)
    types = [parse_type(each) if isinstance(each, str) else each for each in given]
    first = types[0]
    row_type = (
        first
        if len(types) == 1 and isinstance(first, RowType)
        else RowType([RowField(f"f{index}", part) for index, part in enumerate(types)])
    )

    def make(function: Any) -> QueryFunction:
        return QueryFunction(
            _checked("udtf()", function), row_type, _name(function, name), True, deterministic is not False
        )

    return make if f is None else make(f)


def udaf(*arguments: Any, **settings: Any) -> NoReturn:
    """Refused: aggregate with SQL's own functions, or with a ReducingState in a DataStream."""
    raise GraphError("udaf() is not here: use SUM, COUNT, COLLECT_LIST and the like, or aggregate in a DataStream.")


def udtaf(*arguments: Any, **settings: Any) -> NoReturn:
    """Refused: aggregate in a DataStream."""
    raise GraphError("udtaf() is not here: aggregate in a DataStream.")


class TableRows:
    """Calls a table function, and gives its rows as tuples."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, row: Any) -> Iterable[tuple[Any, ...]]:
        return rows_of(self._function(row))


def rows_of(result: Any) -> Iterable[tuple[Any, ...]]:
    """Return what a table function gave as tuples."""
    if result is None:
        return []
    if isinstance(result, str | bytes) or not isinstance(result, Iterable):
        return [(result,)]
    found = []
    for each in result:
        is_row = isinstance(each, Sequence) and not isinstance(each, str | bytes)
        found.append(tuple(each) if is_row or hasattr(each, "as_dict") else (each,))
    return found


def _checked(where: str, function: Any) -> Any:
    if inspect.isclass(function):
        function = function()
    if not callable(function) and not isinstance(function, UserDefinedFunction):
        raise GraphError(f"{where} takes a function, not {function!r}.")
    return function


def _name(function: Any, given: str | None) -> str:
    if given:
        return given
    base = str(getattr(function, "__name__", type(function).__name__))
    return f"{''.join(c if c.isalnum() else '_' for c in base)}_{next(_numbers)}"
