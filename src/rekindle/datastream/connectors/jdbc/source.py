"""`JdbcSource` and its builder, under the names of Flink's newer Java API and of Spark's partitioned reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.connectors.jdbc.database import Database
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession
from rekindle.datastream.connectors.jdbc.options import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.reader import JdbcReader, bounds_query, ranges_of
from rekindle.datastream.connectors.jdbc.settings import JdbcSourceSettings
from rekindle.datastream.connectors.jdbc.statements import count_placeholders, table_of
from rekindle.errors import GraphError

_COLUMN = re.compile(r'[A-Za-z_][\w$]*|"(?:[^"]|"")+"|`[^`]+`')


class JdbcSource(Source[Any]):
    """Reads the rows of a query, once each, and ends. Make one with `JdbcSource.builder()`.

    With a partition column the subtasks read ranges of its values at the same time. The bounds say how to share: rows
    outside of them, and rows without a value, are read too. They are looked up once, on the driver, unless they are
    given. Each range is one query, ordered by the column.

    A restart goes on after the column's last value, so rows that come or go before it do no harm. If several rows have
    that value, as many of them are left out as were read; they are ordered by their other columns, so this is exact
    while they stay as they are. Without a partition column all rows are ordered, and a restart leaves out as many as
    were read: that is exact while the whole table stays as it is. A column with unique values and an index, such as a
    primary key, is best.

    >>> from rekindle.common import Types
    >>> source = (
    ...     JdbcSource.builder()
    ...     .set_db_url("jdbc:sqlite:shop.db")
    ...     .set_sql("SELECT id, total FROM orders WHERE total > 0")
    ...     .set_type_information(Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()]))
    ...     .set_partition_column("id")
    ...     .set_num_partitions(4)
    ...     .build()
    ... )
    """

    returns_fresh_records = True

    def __init__(self, settings: JdbcSourceSettings) -> None:
        """Do not call directly: use `JdbcSource.builder()`."""
        self._settings = settings

    def __repr__(self) -> str:
        return f"JdbcSource(table '{table_of(self._settings.sql)}', {self._settings.connection!r})"

    @staticmethod
    def builder() -> JdbcSourceBuilder:
        """Return a builder without settings."""
        return JdbcSourceBuilder()

    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return self._settings.type_info

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Share the column's values between the bounds."""
        settings = self._settings
        lower, upper = self._bounds()
        ranges = ranges_of(lower, upper, settings.num_partitions or parallelism)
        return [SourceSplit(str(number), each.plain()) for number, each in enumerate(ranges)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[Any]:
        """Return a reader of these ranges."""
        return JdbcReader(self._settings, splits)

    def _bounds(self) -> tuple[Any, Any]:
        settings = self._settings
        given, column = (settings.lower_bound, settings.upper_bound), settings.partition_column
        if column is None or None not in given:
            return given
        session = DatabaseSession(Database(settings.connection), settings.max_retries)
        try:
            found = session.read(
                lambda connection: session.database.execute(connection, bounds_query(settings.sql, column)).fetchone(),
                f"find the bounds of column '{column}' of table '{table_of(settings.sql)}'",
            )
        finally:
            session.close()
        assert found is not None, "MIN and MAX have a row"
        return tuple(bound if own is None else own for own, bound in zip(given, found, strict=True))


class JdbcSourceBuilder:
    """Builds a `JdbcSource`: URL, query and type are required."""

    def __init__(self) -> None:
        """Begin without settings."""
        self._connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        self._sql = ""
        self._type_info: TypeInformation | None = None
        self._options: dict[str, Any] = {}

    def set_db_url(self, db_url: str) -> JdbcSourceBuilder:
        """Set the URL, such as jdbc:postgresql://host:port/database or jdbc:sqlite:path, or one of SQLAlchemy's."""
        self._connection.with_url(db_url)
        return self

    def set_username(self, username: str) -> JdbcSourceBuilder:
        """Set the user."""
        self._connection.with_user_name(username)
        return self

    def set_password(self, password: str) -> JdbcSourceBuilder:
        """Set the password. No log, plan, error or checkpoint shows it."""
        self._connection.with_password(password)
        return self

    def set_driver_name(self, driver_name: str) -> JdbcSourceBuilder:
        """Set the driver's class, as Flink programs do; it must be the one of the URL."""
        self._connection.with_driver_name(driver_name)
        return self

    def set_connection_check_timeout_seconds(self, connection_check_timeout_seconds: int) -> JdbcSourceBuilder:
        """Set how long the source waits for a server that does not answer (60)."""
        self._connection.with_connection_check_timeout_seconds(connection_check_timeout_seconds)
        return self

    def set_sql(self, sql: str) -> JdbcSourceBuilder:
        """Set the query, without placeholders."""
        if not isinstance(sql, str) or not sql.strip():
            raise GraphError(f"set_sql() takes a query such as SELECT a, b FROM t, not {sql!r}.")
        if count_placeholders(sql):
            raise GraphError("set_sql() takes a query without placeholders (?): the partition column bounds its parts.")
        self._sql = sql
        return self

    def set_type_information(self, type_information: TypeInformation) -> JdbcSourceBuilder:
        """Set the type of the records: rows or tuples of the columns, or what the result extractor makes."""
        if not isinstance(type_information, TypeInformation):
            raise GraphError(f"set_type_information() takes a type such as Types.ROW([...]), not {type_information!r}.")
        self._type_info = type_information
        return self

    def set_result_extractor(self, result_extractor: Callable[[tuple[Any, ...]], Any]) -> JdbcSourceBuilder:
        """Set the function that makes a record from a row's values."""
        if not callable(result_extractor):
            raise GraphError(f"set_result_extractor() takes a function of a tuple, not {result_extractor!r}.")
        return self._with(extractor=result_extractor)

    def set_result_set_fetch_size(self, result_set_fetch_size: int) -> JdbcSourceBuilder:
        """Set how many rows are fetched at a time (1000)."""
        return self._with(fetch_size=_positive("set_result_set_fetch_size", result_set_fetch_size))

    def set_partition_column(self, partition_column: str) -> JdbcSourceBuilder:
        """Set the column of the query's result whose values are shared between subtasks."""
        if not isinstance(partition_column, str) or _COLUMN.fullmatch(partition_column) is None:
            raise GraphError(f"set_partition_column() takes the name of a column, not {partition_column!r}.")
        return self._with(partition_column=partition_column)

    def set_num_partitions(self, num_partitions: int) -> JdbcSourceBuilder:
        """Set the number of ranges; by default one per subtask."""
        return self._with(num_partitions=_positive("set_num_partitions", num_partitions))

    def set_lower_bound(self, lower_bound: Any) -> JdbcSourceBuilder:
        """Set where the ranges begin; smaller values are read with the first one. By default the least value."""
        return self._with(lower_bound=lower_bound)

    def set_upper_bound(self, upper_bound: Any) -> JdbcSourceBuilder:
        """Set where the ranges end; greater values are read with the last one. By default the greatest value."""
        return self._with(upper_bound=upper_bound)

    def build(self) -> JdbcSource:
        """Return the source."""
        connection = self._connection.build()
        if not self._sql:
            raise GraphError("A JDBC source needs a query: call set_sql().")
        if self._type_info is None:
            raise GraphError("A JDBC source needs a type: call set_type_information().")
        settings = replace(JdbcSourceSettings(self._sql, connection, self._type_info), **self._options)
        bounded = settings.lower_bound is not None or settings.upper_bound is not None
        if settings.partition_column is None and (bounded or settings.num_partitions is not None):
            raise GraphError("Partitions and their bounds need a column: call set_partition_column().")
        Database(connection)  # a missing client is told here
        return JdbcSource(settings)

    def _with(self, **options: Any) -> JdbcSourceBuilder:
        self._options.update(options)
        return self


def _positive(method: str, value: int) -> int:
    if not isinstance(value, int) or value < 1:
        raise GraphError(f"{method}() takes a whole number of 1 or more, not {value!r}.")
    return value
