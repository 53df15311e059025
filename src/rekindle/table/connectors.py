"""The connectors of tables: `datagen` and `filesystem` to read, `print`, `blackhole` and `filesystem` to write."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rekindle.common.data_types import RowType
from rekindle.common.types import Row
from rekindle.datastream.connectors.datagen import UNLIMITED, DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.connectors.files.file_paths import local_path
from rekindle.errors import GraphError
from rekindle.table.rows_by_chance import RowsByChance
from rekindle.table.table_descriptor import TableDescriptor
from rekindle.table.views import FilesView, View

_FORMATS = ("csv", "json", "parquet", "orc")
_SINKS = ("print", "blackhole", "filesystem")
_SOURCES = ("datagen", "filesystem")
#: Flink's options of CSV in Spark's names.
_SPARK_OPTIONS = {
    "field-delimiter": "sep",
    "quote-character": "quote",
    "escape-character": "escape",
    "null-literal": "nullValue",
}
#: Flink's default.
_ROWS_PER_SECOND = "10000"


def source_view(name: str, descriptor: TableDescriptor) -> View:
    """Return what a query reads in place of a connector's table."""
    connector = descriptor.options.get("connector")
    row_type = columns_of(name, descriptor)
    if connector == "filesystem":
        path, file_format = files_of(name, descriptor)
        return FilesView(path, file_format, row_type, format_options(file_format, descriptor.options))
    raise GraphError(
        f"The table '{name}' has the connector '{connector}', which reads nothing here: {_known(_SOURCES)}. For others "
        "use from_data_stream() and a source of DataStreams."
    )


def check_sink(name: str, descriptor: TableDescriptor) -> str:
    """Return the connector of a table that is written; refuse others."""
    connector = descriptor.options.get("connector", "")
    if connector not in _SINKS:
        raise GraphError(
            f"The table '{name}' has the connector '{connector}', which writes nothing here: {_known(_SINKS)}. For "
            "others use to_data_stream() and a sink of DataStreams."
        )
    return connector


def columns_of(name: str, descriptor: TableDescriptor) -> RowType:
    """Return the columns of a connector's table."""
    if descriptor.schema is None:
        raise GraphError(f"The table '{name}' needs a schema: TableDescriptor.for_connector(...).schema(...).")
    return descriptor.schema.row_type


def files_of(name: str, descriptor: TableDescriptor) -> tuple[str, str]:
    """Return the path and the format of a table of files."""
    path, file_format = descriptor.options.get("path"), descriptor.options.get("format")
    if not path or not file_format:
        raise GraphError(f"The table '{name}' of files needs the options 'path' and 'format'.")
    if file_format not in _FORMATS:
        raise GraphError(f"The table '{name}' has the format '{file_format}', which is not here: {_known(_FORMATS)}.")
    return local_path(f"The table '{name}'", path), file_format


def format_options(file_format: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's options for Flink's options of a format."""
    prefix = f"{file_format}."
    given = {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
    found = {_SPARK_OPTIONS[key]: value for key, value in given.items() if key in _SPARK_OPTIONS}
    unknown = [key for key in given if key not in _SPARK_OPTIONS and key != "ignore-parse-errors"]
    if unknown:
        raise GraphError(f"The option '{prefix}{unknown[0]}' of a table has no meaning here.")
    if file_format in ("csv", "json"):
        found["mode"] = "DROPMALFORMED" if given.get("ignore-parse-errors") == "true" else "FAILFAST"
    return found


def _known(names: tuple[str, ...]) -> str:
    return f"there are {', '.join(names)}"


def generated_source(name: str, descriptor: TableDescriptor) -> DataGeneratorSource[Row]:
    """Return the source of a table of the connector `datagen`, which ends if its options say when."""
    rows = RowsByChance(name, columns_of(name, descriptor), descriptor.options)
    given = descriptor.options.get("rows-per-second", _ROWS_PER_SECOND)
    try:
        rate = RateLimiterStrategy.per_second(float(given))
    except ValueError:
        raise GraphError(f"The option 'rows-per-second' of the table '{name}' is a number, not '{given}'.") from None
    return DataGeneratorSource(rows, UNLIMITED if rows.count is None else rows.count, rate)


def make_directory(path: str) -> None:
    """Make the directory that a table of files is written into."""
    os.makedirs(path, exist_ok=True)
