"""`TableDescriptor`: a table that a connector reads or writes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from rekindle.errors import GraphError
from rekindle.table.schema import Schema

__all__ = ["FormatDescriptor", "TableDescriptor"]


@dataclass(frozen=True)
class FormatDescriptor:
    """The format of a table's files, with its options.

    >>> FormatDescriptor.for_format("json").build()
    json[{}]
    """

    format: str
    options: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """Return a builder of a format."""
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        """Return the name of the format."""
        return self.format

    def get_options(self) -> dict[str, str]:
        """Return the options of the format."""
        return dict(self.options)

    def __str__(self) -> str:
        return f"{self.format}[{self.options}]"

    __repr__ = __str__

    class Builder:
        """Builds a `FormatDescriptor`."""

        def __init__(self, format: str) -> None:
            self._format = format
            self._options: dict[str, str] = {}

        def option(self, key: Any, value: Any) -> FormatDescriptor.Builder:
            """Set an option."""
            self._options[_key(key)] = str(value)
            return self

        def build(self) -> FormatDescriptor:
            """Return the format."""
            return FormatDescriptor(self._format, dict(self._options))


@dataclass(frozen=True)
class TableDescriptor:
    """A table that a connector reads or writes: its columns and options.

    >>> TableDescriptor.for_connector("datagen").option("number-of-rows", "10").build().get_options()
    {'connector': 'datagen', 'number-of-rows': '10'}
    """

    options: dict[str, str]
    schema: Schema | None = None
    comment: str | None = None

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """Return a builder of a table of this connector."""
        return TableDescriptor.Builder({"connector": connector})

    def get_schema(self) -> Schema | None:
        """Return the columns."""
        return self.schema

    def get_options(self) -> dict[str, str]:
        """Return the options."""
        return dict(self.options)

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self.comment

    def with_schema(self, schema: Schema) -> TableDescriptor:
        """Return the same table with these columns."""
        return replace(self, schema=schema)

    class Builder:
        """Builds a `TableDescriptor`."""

        def __init__(self, options: dict[str, str]) -> None:
            self._descriptor = TableDescriptor(dict(options))

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """Set the columns."""
            self._descriptor = replace(self._descriptor, schema=schema)
            return self

        def option(self, key: Any, value: Any) -> TableDescriptor.Builder:
            """Set an option."""
            self._descriptor = replace(self._descriptor, options={**self._descriptor.options, _key(key): str(value)})
            return self

        def format(self, format: str | FormatDescriptor, format_option: Any = None) -> TableDescriptor.Builder:
            """Set the format of the files."""
            if isinstance(format, str):
                return self.option("format", format)
            self.option("format", format.get_format())
            for key, value in format.get_options().items():
                self.option(f"{format.get_format()}.{key}", value)
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """Set a comment."""
            self._descriptor = replace(self._descriptor, comment=comment)
            return self

        def partitioned_by(self, *partition_keys: str) -> NoReturn:
            """Refused: write buckets with a FileSink."""
            raise GraphError("partitioned_by() is not here: write directories with a FileSink and a BucketAssigner.")

        def build(self) -> TableDescriptor:
            """Return the table."""
            return self._descriptor


def _key(key: Any) -> str:
    return str(getattr(key, "key", key))
