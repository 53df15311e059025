"""Runs the queries of `rekindle.table`: names become temporary views of a Spark session of their own."""

from __future__ import annotations

import contextlib
import io
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.data_types import DataType, DataTypes, RowField, RowType, data_type_of
from rekindle.datastream.transformations import Program
from rekindle.errors import GraphError
from rekindle.spark.dataframe_types import type_of
from rekindle.spark.flink_meaning import SETTINGS, with_flink_meaning
from rekindle.spark.query_functions import (
    ImportableFiles,
    ScalarCall,
    TableCall,
    WorkerFunction,
    spark_value,
    stream_value,
)
from rekindle.spark.shared_session import lease_session
from rekindle.table.udf import QueryFunction
from rekindle.table.views import (
    ElementsView,
    FilesView,
    Query,
    QueryView,
    StreamView,
    View,
    check_bounded,
)

_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
#: PySpark logs an error of a query here, with all frames of Java, before anybody can catch it.
_SPARKS_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_ASKED_HERE = ContextVar("_ASKED_HERE", default=False)
#: Runs a bounded program and returns its records as a DataFrame of a session.
CollectStream = Callable[[Program, SparkSession], DataFrame]


class TableQueries:
    """Implements `rekindle.table.views.QueryEngine`."""

    def __init__(self, configuration: Configuration, collect: CollectStream) -> None:
        self._configuration = configuration
        self._collect = collect
        self._session: SparkSession | None = None
        self._kept: dict[View, DataFrame] = {}  # streams are collected once
        #: The text that Spark reads in the place of a query. The types of its views are the same each time.
        self._translated: WeakKeyDictionary[Query, str] = WeakKeyDictionary()
        self._lock = threading.RLock()

    def frame(self, query: Query) -> DataFrame:
        """Return the query's DataFrame. The streams that it reads are collected now."""
        return self._analysed(query, self._frame_of)

    def columns(self, query: Query) -> RowType:
        """Return the query's columns: it is analysed over views without rows."""
        return _row_type(self._analysed(query, self._empty_frame_of).schema)

    def rows(self, frame: DataFrame) -> list[tuple[Any, ...]]:
        """Return the rows of a DataFrame."""
        with _sentences():
            return [tuple(map(stream_value, row)) for row in frame.collect()]

    def write_files(self, frame: DataFrame, path: str, format: str, options: Mapping[str, str]) -> None:
        """Add a DataFrame's rows to the files of a directory."""
        wanted = {key: value for key, value in options.items() if key != "mode"}
        with _sentences():
            frame.write.mode("append").format(format).options(**wanted).save(path)

    def explain(self, query: Query) -> str:
        """Return Spark's plan of the query."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            self._analysed(query, self._empty_frame_of).explain("extended")
        return text.getvalue()

    # -- views --------------------------------------------------------------------------------------------------------

    def _spark(self) -> SparkSession:
        if self._session is None:
            # Of the same context, but with views, functions and settings of its own.
            self._session = lease_session(self._configuration).spark.newSession()
            context = self._session.sparkContext
            if not context.getConf().contains(_SHUFFLE_PARTITIONS):
                # Spark's default of 200 becomes 200 tasks of Python when a stream reads the result.
                self._session.conf.set(_SHUFFLE_PARTITIONS, context.defaultParallelism)
            for key, value in SETTINGS.items():
                self._session.conf.set(key, value)
            zone = self._configuration.get(config.LOCAL_TIME_ZONE)
            if zone is not None:
                self._session.conf.set("spark.sql.session.timeZone", zone)
        return self._session

    def _analysed(self, query: Query, frame_of: Callable[[View], DataFrame]) -> DataFrame:
        with self._lock, _sentences():
            spark = self._spark()
            # All of them first: a view may be a query, whose names are registered here too.
            frames = {name: frame_of(view) for name, view in query.views.items()}
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
            files = ImportableFiles.of(self._configuration) if query.functions else None
            for function in query.functions.values():
                _register(spark, function, files)
            if query in self._translated:
                return spark.sql(self._translated[query])
            self._translated[query], frame = with_flink_meaning(spark, query.sql, query.functions)
            return frame

    def _frame_of(self, view: View) -> DataFrame:
        spark = self._spark()
        match view:
            case QueryView(query):
                return self.frame(query)
            case StreamView(program, row_type):
                if view not in self._kept:
                    check_bounded(program)
                    self._kept[view] = self._collect(program, spark).selectExpr(*map(_cast, row_type))
                return self._kept[view]
            case ElementsView(rows, row_type):
                return spark.createDataFrame([spark_value(row) for row in rows], _ddl(row_type))
            case FilesView(path, format, row_type, options):
                return spark.read.format(format).schema(_ddl(row_type)).options(**options).load(path)

    def _empty_frame_of(self, view: View) -> DataFrame:
        if isinstance(view, QueryView):
            return self._analysed(view.query, self._empty_frame_of)
        return self._spark().createDataFrame([], _ddl(view.row_type))


def _cast(field: RowField) -> str:
    return f"CAST(`{field.name}` AS {field.data_type.spark_name()}) AS `{field.name}`"


def _ddl(row_type: RowType) -> str:
    return ", ".join(f"`{field.name}` {field.data_type.spark_name()}" for field in row_type)


# -- functions --------------------------------------------------------------------------------------------------------


def _register(spark: SparkSession, function: QueryFunction, files: ImportableFiles | None) -> None:
    called = WorkerFunction(function.function(), files)
    if function.is_table_function:
        fields = ", ".join(f"`{field.name}`: {field.data_type.spark_name()}" for field in function.row_type)
        made = sf.udf(TableCall(called), f"ARRAY<STRUCT<{fields}>>", useArrow=False)
    else:
        result = function.row_type if isinstance(function.result_type, RowType) else function.result_type
        made = sf.udf(ScalarCall(called), result.spark_name(), useArrow=False)
    spark.udf.register(function.name, made if function.deterministic else made.asNondeterministic())


# -- types -------------------------------------------------------------------------------------------------------------


def _row_type(schema: st.StructType) -> RowType:
    return RowType([RowField(field.name, _data_type(field.dataType, field.name)) for field in schema.fields])


def _data_type(spark_type: st.DataType, name: str) -> DataType:
    if isinstance(spark_type, st.DecimalType):
        return DataTypes.DECIMAL(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, st.NullType):
        return DataTypes.NULL()
    if isinstance(spark_type, st.TimestampType):
        return DataTypes.TIMESTAMP_LTZ(6)
    return data_type_of(type_of(spark_type, name))


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """Turn an error of Spark about a query into one sentence."""
    for name in _SPARKS_LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_not_asked_here)
    asked = _ASKED_HERE.set(True)
    try:
        yield
    except (AnalysisException, ParseException) as error:
        raise GraphError(f"Spark, which runs the queries of tables, refuses this one: {_first(error)}") from None
    except PySparkException as error:
        raise GraphError(f"Spark, which runs the queries of tables, could not run this one: {_first(error)}") from error
    finally:
        _ASKED_HERE.reset(asked)


def _not_asked_here(record: logging.LogRecord) -> bool:
    return not _ASKED_HERE.get()


def _first(error: PySparkException) -> str:
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
