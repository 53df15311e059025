"""`Table`: a query that is made step by step. Every step is a SELECT over the one before; Spark runs the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rekindle.common.data_types import RowType
from rekindle.common.java_names import refuse_java_name
from rekindle.errors import GraphError
from rekindle.table.expression import Expression, as_expression, quoted
from rekindle.table.expressions import col
from rekindle.table.flow import Flow
from rekindle.table.grouping import AGGREGATES, Grouping, GroupLayout
from rekindle.table.schema import Schema
from rekindle.table.table_result import TableResult
from rekindle.table.udf import QueryFunction, TableRows
from rekindle.table.views import Query

if TYPE_CHECKING:
    from rekindle.table.table_environment import TableEnvironment

__all__ = ["GroupedTable", "Table"]

#: Stands for the table before, in the text of a step; no text of a user has it.
_INPUT = "\0"
#: Methods of PyFlink's tables that have no counterpart here.
_BEYOND = {
    "window": "windows in tables",
    "over_window": "windows in tables",
    "join_lateral": "lateral joins of the Table API",
    "left_outer_join_lateral": "lateral joins of the Table API",
    "create_temporal_table_function": "temporal tables",
    "aggregate": "Python aggregates",
    "flat_aggregate": "Python aggregates",
}


class Table:
    """A table: of a stream, of values, of a connector, or what a query makes of others."""

    def __init__(
        self, environment: TableEnvironment, query: Query, flow: Flow | None = None, grouping: Grouping | None = None
    ) -> None:
        self._env = environment
        self._query = query
        #: The same rows as a stream, if it is the table of a stream and no step needs SQL.
        self._flow = flow
        #: The groups, if the last step has grouped the rows.
        self._grouping = grouping

    def __str__(self) -> str:
        """Return a name of the table for SQL, under which it is registered."""
        return self._env._register_unnamed(self)

    def __getattr__(self, name: str) -> Any:
        if name in _BEYOND:
            raise GraphError(
                f"Table.{name}() is not here: there are no {_BEYOND[name]}. Use to_data_stream() and the windows and "
                "aggregations of DataStreams, or Spark's SQL in sql_query()."
            )
        refuse_java_name(self, name)

    # -- columns ------------------------------------------------------------------------------------------------------

    def select(self, *fields: Expression) -> Table:
        """Keep these columns, or what is computed of them."""
        selected = self._step(f"SELECT {_columns(fields, '_c')} FROM {_INPUT}", *fields)
        if self._flow is not None and fields and not any(_is_all(field) for field in fields):
            named = _named(fields, "_c")
            selected._flow = self._flow.project([name for _, name in named], [field.computed for field, _ in named])
        return selected

    def add_columns(self, *fields: Expression) -> Table:
        """Add columns that are computed of others."""
        return self._step(f"SELECT *, {_columns(fields, '_c')} FROM {_INPUT}", *fields)

    def add_or_replace_columns(self, *fields: Expression) -> Table:
        """Add columns, in place of those of the same name."""
        given = {field.name: field for field in fields}
        known = self.get_schema().get_column_names()
        kept = [given.pop(name) if name in given else col(name) for name in known]
        return self.select(*kept, *given.values())

    def drop_columns(self, *fields: Expression) -> Table:
        """Leave columns out."""
        dropped = {field.name for field in fields}
        return self.select(*(col(name) for name in self.get_schema().get_column_names() if name not in dropped))

    def rename_columns(self, *fields: Expression) -> Table:
        """Give columns other names: `col("a").alias("b")`."""
        renamed = {field.sql: field for field in fields}
        return self.select(*(renamed.get(quoted(name), col(name)) for name in self.get_schema().get_column_names()))

    def alias(self, field: str, *fields: str) -> Table:
        """Give all columns names, in their order."""
        known = self.get_schema().get_column_names()
        names = [field, *fields]
        if len(names) > len(known):
            raise GraphError(f"The table has {len(known)} columns, not {len(names)}.")
        names += known[len(names) :]
        return self.select(*(col(old).alias(new) for old, new in zip(known, names, strict=True)))

    # -- rows ---------------------------------------------------------------------------------------------------------

    def filter(self, predicate: Expression) -> Table:
        """Keep the rows for which this holds."""
        return self._step(f"SELECT * FROM {_INPUT} WHERE {predicate.sql}", predicate)

    where = filter

    def distinct(self) -> Table:
        """Keep each row once."""
        return self._step(f"SELECT DISTINCT * FROM {_INPUT}")

    def order_by(self, *fields: Expression) -> Table:
        """Order the rows."""
        return self._step(f"SELECT * FROM {_INPUT} ORDER BY {', '.join(field.sql for field in fields)}", *fields)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Keep so many rows, after leaving `offset` out."""
        return self._step(f"SELECT * FROM {_INPUT} LIMIT {int(fetch)} OFFSET {int(offset)}")

    def fetch(self, fetch: int) -> Table:
        """Keep so many rows."""
        return self.limit(fetch)

    def offset(self, offset: int) -> Table:
        """Leave so many rows out."""
        return self._step(f"SELECT * FROM {_INPUT} OFFSET {int(offset)}")

    def map(self, func: QueryFunction) -> Table:
        """Make one row of each, with a `udf` that gets the row."""
        row_type = func.row_type
        fields = ", ".join(f"made.{quoted(name)}" for name in row_type.field_names())
        sql = f"SELECT {fields} FROM (SELECT `{func.name}`(struct(*)) AS made FROM {_INPUT})"
        return self._step(sql, functions=[func])

    def flat_map(self, func: QueryFunction) -> Table:
        """Make any number of rows of each, with a `udtf` that gets the row."""
        if not func.is_table_function:
            raise GraphError("flat_map() takes a function of udtf().")
        made = self._step(f"SELECT inline(`{func.name}`(struct(*))) FROM {_INPUT}", functions=[func])
        if self._flow is not None:
            made._flow = self._flow.explode(func.row_type.field_names(), TableRows(func.function()))
        return made

    # -- groups and joins ---------------------------------------------------------------------------------------------

    def group_by(self, *fields: Expression) -> GroupedTable:
        """Group the rows by these columns."""
        return GroupedTable(self, fields)

    def join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """Join with another table; the names of the columns must differ."""
        return self._joined("JOIN", right, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """Join, and keep rows of this table without a partner."""
        return self._joined("LEFT OUTER JOIN", right, join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """Join, and keep rows of the other table without a partner."""
        return self._joined("RIGHT OUTER JOIN", right, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """Join, and keep rows of both tables without a partner."""
        return self._joined("FULL OUTER JOIN", right, join_predicate)

    def union(self, right: Table) -> Table:
        """Return the rows of both tables, each once."""
        return self._combined("UNION", right)

    def union_all(self, right: Table) -> Table:
        """Return the rows of both tables."""
        return self._combined("UNION ALL", right)

    def intersect(self, right: Table) -> Table:
        """Return the rows that are in both tables, each once."""
        return self._combined("INTERSECT", right)

    def minus(self, right: Table) -> Table:
        """Return the rows that are not in the other table, each once."""
        return self._combined("EXCEPT", right)

    # -- results ------------------------------------------------------------------------------------------------------

    def get_schema(self) -> Schema:
        """Return the columns, without running the query."""
        return Schema(self._row_type())

    get_resolved_schema = get_schema

    def print_schema(self) -> None:
        """Print the columns."""
        print(self.get_schema())

    def execute(self) -> TableResult:
        """Run the query."""
        return self._env._execute(self._query)

    def execute_insert(self, table_path_or_descriptor: Any, overwrite: bool = False) -> TableResult:
        """Run the query and write its rows into a table."""
        if overwrite:
            raise GraphError("execute_insert(overwrite=True) is not here: remove the table's files before.")
        return self._env._insert(self, table_path_or_descriptor)

    def to_pandas(self) -> Any:
        """Run the query and return its rows as a DataFrame of pandas."""
        return self._env._engine().frame(self._query).toPandas()

    def explain(self, *extra_details: Any) -> str:
        """Return Spark's plan of the query."""
        return self._env._engine().explain(self._query)

    # -- parts --------------------------------------------------------------------------------------------------------

    def _row_type(self) -> RowType:
        return self._env._engine().columns(self._query)

    def _step(self, sql: str, *expressions: Expression, functions: list[QueryFunction] | None = None) -> Table:
        used = dict(self._query.functions)
        for expression in expressions:
            used.update(as_expression(expression).functions)
        used.update({function.name: function for function in functions or ()})
        return Table(self._env, Query(sql.replace(_INPUT, f"({self._query.sql})"), self._query.views, used))

    def _joined(self, kind: str, right: Table, predicate: Expression | None) -> Table:
        condition = "" if predicate is None else f" ON {predicate.sql}"
        return self._with(right, lambda left, other: f"SELECT * FROM ({left}) {kind} ({other}){condition}")

    def _combined(self, operator: str, right: Table) -> Table:
        return self._with(right, lambda left, other: f"(SELECT * FROM ({left})) {operator} (SELECT * FROM ({other}))")

    def _with(self, right: Table, sql: Callable[[str, str], str]) -> Table:
        if not isinstance(right, Table) or right._env is not self._env:
            raise GraphError("Tables of one environment are joined with each other only.")
        views = {**self._query.views, **right._query.views}
        functions = {**self._query.functions, **right._query.functions}
        return Table(self._env, Query(sql(self._query.sql, right._query.sql), views, functions))


class GroupedTable:
    """A table whose rows are grouped; `select` aggregates each group."""

    def __init__(self, grouped: Table, keys: tuple[Expression, ...]) -> None:
        self._table = grouped
        self._keys = keys

    def select(self, *fields: Expression) -> Table:
        """Return a row per group."""
        keys = ", ".join(key.sql for key in self._keys)
        sql = f"SELECT {_columns(fields, 'EXPR$')} FROM {_INPUT} GROUP BY {keys}"
        grouped = self._table._step(sql, *fields, *self._keys)
        grouped._grouping = self._grouping(fields)
        return grouped

    def _grouping(self, fields: tuple[Expression, ...]) -> Grouping | None:
        """Return what the groups are made of, if each field is a key or an aggregate that grows with each row."""
        keys = [as_expression(key) for key in self._keys]
        indexes = {key.sql: index for index, key in enumerate(keys)}
        aggregates: list[tuple[str, Expression]] = []
        outputs = []
        for field in map(as_expression, fields):
            if field.aggregate is not None and field.aggregate[0] in AGGREGATES:
                outputs.append(len(keys) + len(aggregates))
                aggregates.append(field.aggregate)
            elif field.sql in indexes:
                outputs.append(indexes[field.sql])
            else:
                return None
        columns = [*keys, *(argument for _, argument in aggregates)]
        prepared = self._table.select(*(column.alias(f"c{index}") for index, column in enumerate(columns)))
        layout = GroupLayout(len(keys), tuple(kind for kind, _ in aggregates), tuple(outputs))
        return Grouping(prepared, layout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name) if name in _BEYOND else self._missing(name)

    def _missing(self, name: str) -> Any:
        refuse_java_name(self, name)


def _columns(fields: tuple[Expression, ...], unnamed: str) -> str:
    """Return columns with their names; those without one are numbered, as Flink numbers them."""
    if not fields:
        raise GraphError("select() takes at least one column.")
    named = _named(fields, unnamed)
    return ", ".join("*" if _is_all(field) else f"{field.sql} AS {quoted(name)}" for field, name in named)


def _named(fields: tuple[Expression, ...], unnamed: str) -> list[tuple[Expression, str]]:
    found, number = [], 0
    for index, field in enumerate(map(as_expression, fields)):
        name = field.name
        if name is None and not _is_all(field):
            name = f"{unnamed}{number if unnamed.endswith('$') else index}"
            number += 1
        found.append((field, name or "*"))
    return found


def _is_all(field: Any) -> bool:
    return bool(as_expression(field).sql == "*")
