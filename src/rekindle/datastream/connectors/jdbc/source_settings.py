"""The settings of a JDBC source, and how it makes records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rekindle.common.typeinfo import RowTypeInfo, TypeInformation
from rekindle.common.types import Row
from rekindle.datastream.connectors.jdbc.connection_options import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.errors import ConnectorError


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
