"""`TableEnvironment` and `StreamTableEnvironment`: names of tables, queries over them, and the way from and to streams.

Queries are Spark's: the names in a query become views over DataFrames of bounded streams, values and files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Any, NoReturn

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.data_types import DataType, DataTypes, RowField, RowType, data_type_of
from rekindle.common.type_system.fields import fields_of
from rekindle.common.type_system.inference import infer_type_info
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream import find_launcher
from rekindle.datastream.data_stream import DataStream
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment
from rekindle.datastream.transformations import Program, Transformation
from rekindle.errors import GraphError
from rekindle.table.connectors import columns_of, generated_source, source_view
from rekindle.table.elements import rows_and_type
from rekindle.table.environment_settings import EnvironmentSettings
from rekindle.table.expression import quoted
from rekindle.table.flow import Flow
from rekindle.table.insertion import Insertion
from rekindle.table.schema import Schema
from rekindle.table.statements import (
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    InsertInto,
    Select,
    ShowTables,
    parse_statement,
    spark_text,
)
from rekindle.table.stream_rows import to_row
from rekindle.table.table import Table
from rekindle.table.table_config import TableConfig
from rekindle.table.table_descriptor import TableDescriptor
from rekindle.table.table_result import TableResult
from rekindle.table.udf import QueryFunction, udf
from rekindle.table.views import ElementsView, Query, QueryEngine, QueryView, StreamView, View, is_endless

__all__ = ["StreamTableEnvironment", "TableEnvironment"]

_unnamed = count()


class TableEnvironment:
    """Names of tables and functions, and the queries over them.

    >>> from rekindle.common.data_types import DataTypes
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> t_env.create_temporary_view("words", t_env.from_elements([("to", 1)], ["word", "count"]))
    >>> t_env.list_tables()
    ['words']
    """

    def __init__(self, environment: StreamExecutionEnvironment, streaming: bool = True) -> None:
        self._stream_env = environment
        self._streaming = streaming
        self._views: dict[str, Table | TableDescriptor] = {}
        self._functions: dict[str, QueryFunction] = {}
        self._query_engine: QueryEngine | None = None

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """Return a new environment."""
        settings = environment_settings
        if not isinstance(settings, EnvironmentSettings):
            settings = EnvironmentSettings(configuration=settings)
        env = StreamExecutionEnvironment.get_execution_environment(settings.get_configuration())
        return TableEnvironment(env, settings.is_streaming_mode())

    def get_config(self) -> TableConfig:
        """Return the configuration."""
        return TableConfig(self._stream_env.get_configuration())

    # -- tables -------------------------------------------------------------------------------------------------------

    def from_elements(self, elements: Iterable[Any], schema: Any = None, verify_schema: bool = True) -> Table:
        """Return a table of these rows. The schema is a `DataTypes.ROW`, or the names of the columns."""
        rows, row_type = rows_and_type(elements, schema)
        return self._table_of("elements", ElementsView(rows, row_type))

    def from_path(self, path: str) -> Table:
        """Return the table of this name."""
        self._check_known(path)
        found = self._views[path]
        return found if isinstance(found, Table) else self._source_table(path, found)

    scan = from_path

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """Return the table of a connector."""
        return self._source_table("of the descriptor", descriptor)

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """Return a table of the rows of a DataFrame of pandas."""
        names = schema if schema is not None else list(map(str, pdf.columns))
        return self.from_elements(pdf.astype(object).where(pdf.notna(), None).itertuples(index=False, name=None), names)

    def create_temporary_view(self, view_path: str, table_or_stream: Any, *fields_or_schema: Any) -> None:
        """Give a table, or a stream, a name."""
        if not isinstance(table_or_stream, Table):
            raise GraphError("create_temporary_view() of a TableEnvironment takes a Table.")
        self._name(view_path, table_or_stream)

    def create_temporary_table(self, path: str, descriptor: TableDescriptor) -> None:
        """Give a table of a connector a name."""
        if not isinstance(descriptor, TableDescriptor):
            raise GraphError(f"create_temporary_table() takes a TableDescriptor, not {descriptor!r}.")
        self._name(path, descriptor)

    create_table = create_temporary_table

    def drop_temporary_view(self, view_path: str) -> bool:
        """Forget a name; returns whether there was one."""
        return self._views.pop(view_path, None) is not None

    drop_temporary_table = drop_temporary_view

    def list_tables(self) -> list[str]:
        """Return the names of tables and views."""
        return sorted(self._views)

    list_views = list_temporary_tables = list_temporary_views = list_tables

    # -- functions ----------------------------------------------------------------------------------------------------

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Give a function of `udf` or `udtf` a name in SQL."""
        made = function if isinstance(function, QueryFunction) else udf(function)
        self._functions[path] = replace(made, name=path)

    create_temporary_system_function = create_temporary_function

    def drop_temporary_function(self, path: str) -> bool:
        """Forget a function; returns whether there was one."""
        return self._functions.pop(path, None) is not None

    drop_temporary_system_function = drop_temporary_function

    def create_java_temporary_function(self, *arguments: Any) -> NoReturn:
        """Refused: there are no functions of Java."""
        raise GraphError("create_java_temporary_function() is not here: write the function in Python, with udf().")

    # -- SQL ----------------------------------------------------------------------------------------------------------

    def sql_query(self, query: str) -> Table:
        """Return the table of a query."""
        statement = parse_statement(query)
        if not isinstance(statement, Select):
            raise GraphError("sql_query() takes a SELECT: use execute_sql() for other statements.")
        return Table(self, self._query(statement.query))

    def execute_sql(self, stmt: str) -> TableResult:
        """Run a statement."""
        match parse_statement(stmt):
            case Select(query):
                return self._execute(self._query(query))
            case CreateTable(name, descriptor):
                self._name(name, descriptor)
            case CreateView(name, query, columns):
                view = Table(self, self._query(query))
                self._name(name, view.alias(*columns) if columns else view)
            case InsertInto(name, query):
                return self._insert(Table(self, self._query(_with_select(query))), name)
            case Drop(name, if_exists):
                if not self.drop_temporary_view(name) and not if_exists:
                    raise self._unknown(name)
            case Describe(name):
                rows = [(field.name, field.data_type.sql()) for field in self.from_path(name)._row_type()]
                return TableResult(_texts("name", "type"), lambda: rows)
            case Explain(query):
                text = self._engine().explain(self._query(query))
                return TableResult(_texts("result"), lambda: [(text,)], plain=True)
            case ShowTables():
                return TableResult(_texts("table name"), lambda: [(name,) for name in self.list_tables()])
        return TableResult(RowType(), list, plain=True)

    def explain_sql(self, stmt: str, *extra_details: Any) -> str:
        """Return Spark's plan of a query."""
        return self.sql_query(stmt).explain()

    def create_statement_set(self) -> NoReturn:
        """Refused: insert one after the other."""
        raise GraphError("create_statement_set() is not here: call execute_insert() for each table in turn.")

    # -- parts --------------------------------------------------------------------------------------------------------

    def _engine(self) -> QueryEngine:
        if self._query_engine is None:
            self._query_engine = find_launcher.load_launcher().query_engine(self._stream_env.get_configuration())
        return self._query_engine

    def _table_of(self, base: str, view: View, flow: Flow | None = None) -> Table:
        name = f"{re.sub(r'[^A-Za-z0-9]', '_', base)}_{next(_unnamed)}_"
        return Table(self, Query(f"SELECT * FROM {quoted(name)}", {name: view}), flow)

    def _source_table(self, name: str, descriptor: TableDescriptor) -> Table:
        if descriptor.options.get("connector") != "datagen":
            return self._table_of(name, source_view(name, descriptor))
        row_type = columns_of(name, descriptor)
        source = generated_source(name, descriptor)
        stream = self._stream_env.from_source(source, WatermarkStrategy.no_watermarks(), name, row_type.to_type_info())
        return self._table_of_stream(stream, row_type)

    def _table_of_stream(self, stream: DataStream, row_type: RowType) -> Table:
        """Return the table of a stream of rows that nothing else reads."""
        program = self._only(stream._collect(), "table of a stream", stream._operator)
        return self._table_of("stream", StreamView(program, row_type), Flow(stream, tuple(row_type.field_names())))

    def _name(self, name: str, what: Table | TableDescriptor) -> None:
        if not re.fullmatch(r"\w+", name):
            raise GraphError(f"A table's name here is one word of letters, digits and _, no catalog: not '{name}'.")
        self._views[name] = what

    def _register_unnamed(self, of: Table) -> str:
        name = f"unnamed_{next(_unnamed)}"
        self._views[name] = of
        return name

    def _query(self, sql: str) -> Query:
        """Return a query in SQL, with what its names stand for."""
        words = set(re.findall(r"\w+", sql))
        views: dict[str, View] = {}
        for name in self._views:
            if name in words:
                of = self.from_path(name)
                views[name] = QueryView(of._query)
        functions = {name: function for name, function in self._functions.items() if name in words}
        return Query(spark_text(sql), views, functions)

    def _execute(self, query: Query) -> TableResult:
        engine = self._engine()
        frame = engine.frame(query)
        return TableResult(engine.columns(query), lambda: engine.rows(frame))

    def _insert(self, of: Table, target: str | TableDescriptor) -> TableResult:
        name = target if isinstance(target, str) else "of the descriptor"
        descriptor = self._views.get(target) if isinstance(target, str) else target
        if not isinstance(descriptor, TableDescriptor):
            raise self._unknown(name)
        return Insertion(self, of, name, descriptor).run()

    def _is_streaming(self) -> bool:
        mode = self._stream_env.get_configuration().get(config.RUNTIME_MODE)
        return self._streaming and RuntimeExecutionMode[mode] is not RuntimeExecutionMode.BATCH

    def _only(self, last: Transformation | None, name: str, *also: Transformation | None) -> Program:
        """Return a program of one operator and those before it. Jobs of the environment do not run it."""
        assert last is not None, "a sink is an operator"
        env = self._stream_env
        apart = {id(last), *map(id, also)}
        env._transformations[:] = [each for each in env._transformations if id(each) not in apart]
        return replace(env._program(name, last), transformations=(last,))

    def _check_known(self, name: str) -> None:
        if name not in self._views:
            raise self._unknown(name)

    def _unknown(self, name: str) -> GraphError:
        known = ", ".join(self.list_tables()) or "none"
        return GraphError(f"There is no table '{name}'; there are: {known}.")


class StreamTableEnvironment(TableEnvironment):
    """Tables of streams, and streams of tables.

    >>> from rekindle.common import Types
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> t_env = StreamTableEnvironment.create(env)
    >>> stream = env.from_collection([("to", 1)], Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()]))
    >>> t_env.create_temporary_view("words", stream)
    """

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """Return an environment of tables over an environment of streams."""
        env = stream_execution_environment or StreamExecutionEnvironment.get_execution_environment()
        if not isinstance(env, StreamExecutionEnvironment):
            raise GraphError(f"StreamTableEnvironment.create() takes a StreamExecutionEnvironment, not {env!r}.")
        settings = environment_settings or EnvironmentSettings()
        if environment_settings is not None:
            env.configure(settings.get_configuration())
        return StreamTableEnvironment(env, settings.is_streaming_mode())

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """Return the table of a stream. Queries read bounded streams; others go to `print` and back to streams.

        The columns are the fields of the stream's type; a `Schema`, or expressions, give them other names.
        """
        type_info = data_stream.get_type()
        if fields_of(type_info) is None:
            row_type = RowType([RowField("f0", data_type_of(type_info))])
        else:
            found = data_type_of(type_info)
            assert isinstance(found, RowType)
            row_type = found
        row_type = _renamed(row_type, fields_or_schema)
        rows = data_stream.map(to_row(type_info, row_type.field_names()), row_type.to_type_info())
        return self._table_of_stream(rows, row_type)

    def create_temporary_view(self, view_path: str, table_or_stream: Any, *fields_or_schema: Any) -> None:
        """Give a table, or a stream, a name."""
        if isinstance(table_or_stream, DataStream):
            table_or_stream = self.from_data_stream(table_or_stream, *fields_or_schema)
        super().create_temporary_view(view_path, table_or_stream)

    def to_data_stream(self, table: Table, target_data_type: DataType | None = None) -> DataStream:
        """Return the stream of a table's rows."""
        if not isinstance(table, Table):
            raise GraphError(f"to_data_stream() takes a Table, not {table!r}.")
        if table._flow is not None and target_data_type is None and (not table._flow.steps or is_endless(table._query)):
            return table._flow.rows(table._row_type()) if table._flow.steps else table._flow.stream
        if target_data_type is not None:
            table = self._as_type(table, target_data_type)
        return self._stream_env.from_dataframe(self._engine().frame(table._query), source_name="Table")

    def to_append_stream(self, table: Table, type_info: Any) -> DataStream:
        """Return the stream of a table's rows, as values of a type, whose fields are the columns in their order."""
        fields = fields_of(infer_type_info(type_info))
        if fields is not None:
            names = table._row_type().field_names()
            if len(names) != len(fields):
                raise GraphError(f"The table has {len(names)} columns, but the type has {len(fields)}.")
            pairs = zip(names, fields, strict=True)
            columns = ", ".join(f"{quoted(old)} AS {quoted(new)}" for old, (new, _) in pairs)
            table = table._step(f"SELECT {columns} FROM \0")
        return self._stream_env.from_dataframe(
            self._engine().frame(table._query), source_name="Table", type_info=type_info
        )

    def to_changelog_stream(self, table: Table, *arguments: Any) -> DataStream:
        """Return the stream of a table's rows: a bounded table has insertions only."""
        return self.to_data_stream(table)

    def to_retract_stream(self, table: Table, type_info: Any) -> NoReturn:
        """Refused: bounded tables take nothing back."""
        raise GraphError("to_retract_stream() is not here: a bounded table takes nothing back; use to_data_stream().")

    def from_changelog_stream(self, *arguments: Any) -> NoReturn:
        """Refused: a table is the rows of a stream, all of them inserted."""
        raise GraphError("from_changelog_stream() is not here: use from_data_stream() for streams of insertions.")

    def _as_type(self, table: Table, target: DataType) -> Table:
        if not isinstance(target, RowType):
            raise GraphError(f"to_data_stream() takes DataTypes.ROW(...) as its type, not {target!r}.")
        names = table._row_type().field_names()
        if len(names) != len(target):
            raise GraphError(f"The table has {len(names)} columns, but the type has {len(target)}.")
        pairs = zip(names, target, strict=True)
        columns = [f"CAST({quoted(old)} AS {new.data_type.spark_name()}) AS {quoted(new.name)}" for old, new in pairs]
        return table._step(f"SELECT {', '.join(columns)} FROM \0")


def _renamed(row_type: RowType, fields_or_schema: tuple[Any, ...]) -> RowType:
    if not fields_or_schema:
        return row_type
    first = fields_or_schema[0]
    if isinstance(first, Schema):
        given = first.row_type
        if len(given) == len(row_type):
            return given
        raise GraphError(f"The stream has {len(row_type)} fields, but the schema has {len(given)} columns.")
    names = [each.name if hasattr(each, "sql") else str(each) for each in fields_or_schema]
    if len(names) != len(row_type):
        raise GraphError(f"The stream has {len(row_type)} fields, not {len(names)}.")
    return RowType([RowField(name, part) for name, part in zip(names, row_type.field_types(), strict=True)])


def _texts(*names: str) -> RowType:
    return RowType([RowField(name, DataTypes.STRING()) for name in names])


def _with_select(query: str) -> str:
    return f"SELECT * FROM ({query})" if query.lstrip().upper().startswith("VALUES") else query
