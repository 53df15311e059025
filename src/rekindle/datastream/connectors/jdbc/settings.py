"""The settings of a sink and of a source, and how they read and make records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rekindle.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from rekindle.common.types import Row
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.datastream.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from rekindle.datastream.connectors.jdbc.statements import count_placeholders, table_of
from rekindle.errors import ConnectorError, GraphError, TypeMismatchError


@dataclass(frozen=True)
class JdbcSinkSettings:
    """The settings of a JDBC sink: its statement, the type of its rows, its database, its batches."""

    sql: str
    type_info: RowTypeInfo | TupleTypeInfo
    connection: JdbcConnectionOptions
    execution: JdbcExecutionOptions

    def __post_init__(self) -> None:
        if not isinstance(self.sql, str) or not self.sql.strip():
            raise GraphError(f"A JDBC sink needs a statement such as INSERT INTO t (a) VALUES (?), not {self.sql!r}.")
        if not isinstance(self.type_info, RowTypeInfo | TupleTypeInfo):
            raise GraphError(f"A JDBC sink needs a type such as Types.ROW([...]), not {self.type_info!r}.")
        if not isinstance(self.connection, JdbcConnectionOptions):
            raise GraphError(f"A JDBC sink needs JdbcConnectionOptions, not {type(self.connection).__name__}.")
        if not isinstance(self.execution, JdbcExecutionOptions):
            raise GraphError(f"A JDBC sink takes JdbcExecutionOptions, not {type(self.execution).__name__}.")
        placeholders, fields = count_placeholders(self.sql), len(self.type_info.get_field_types())
        if placeholders != fields:
            raise GraphError(
                f"The statement for {self.target} has {placeholders} placeholders (?), but {self.type_info} has "
                f"{fields} fields: give each field one placeholder, in their order."
            )

    @property
    def target(self) -> str:
        """The table for messages."""
        table = table_of(self.sql)
        return f"table '{table}'" if table is not None else f"'{self.sql[:60]}'"

    def values_type(self) -> TypeInformation:
        """The type of a row's values, a tuple."""
        return Types.TUPLE(self.type_info.get_field_types())

    def reader(self) -> Callable[[Any], RowValues]:
        """Return a function from a record to the values of its fields, in the placeholders' order."""
        width = len(self.type_info.get_field_types())
        names = self.type_info.get_field_names() if isinstance(self.type_info, RowTypeInfo) else None

        def values(record: Any) -> RowValues:
            if type(record) is tuple and len(record) == width:
                return record
            if isinstance(record, Row):
                found = tuple(record.get_fields_by_names(names)) if names is not None else tuple(record)
            elif isinstance(record, tuple | list):
                found = tuple(record)
            else:
                raise TypeMismatchError(
                    f"A JDBC sink takes rows and tuples, not {record!r}: map the stream to {self.type_info} before."
                )
            if len(found) != width:
                raise TypeMismatchError(f"{record!r} has {len(found)} fields, but {self.type_info} was declared.")
            return found

        return values


@dataclass(frozen=True)
class JdbcSourceSettings:
    """The settings of a JDBC source: its query and its database."""

    sql: str
    connection: JdbcConnectionOptions
    type_info: TypeInformation
    extractor: Callable[[RowValues], Any] | None = None
    fetch_size: int = 1000
    max_retries: int = 3
    partition_column: str | None = None
    num_partitions: int | None = None
    lower_bound: Any = None
    upper_bound: Any = None

    def record_maker(self) -> Callable[[RowValues], Any]:
        """Return the function that makes a record from the values of a row."""
        if self.extractor is not None:
            return self.extractor
        kind = self.type_info
        width = len(kind.get_field_types()) if hasattr(kind, "get_field_types") else None
        names = kind.get_field_names() if isinstance(kind, RowTypeInfo) else None

        def record(values: RowValues) -> Any:
            if width is not None and len(values) != width:
                raise ConnectorError(
                    f"The query returns {len(values)} columns, but {kind} was declared: name the columns in the query, "
                    "or correct the type."
                )
            if width is None:
                return values[0]
            if names is None:
                return values
            row = Row(*values)
            row.set_field_names(names)
            return row

        return record
