"""The cells of a `CsvSchema`: how each column is read and written."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from rekindle.common.data_types import ArrayType, DataType, DecimalType
from rekindle.datastream.formats.csv_cells import cell_columns, cell_reader, cell_writer
from rekindle.datastream.formats.csv_lines import cell_quoter
from rekindle.datastream.formats.csv_schema import CsvColumn, CsvSchema
from rekindle.datastream.formats.fieldwise import Convert
from rekindle.datastream.formats.mismatch import must_be


def column_readers(schema: CsvSchema) -> list[Convert]:
    """Return a function per column from a cell's text to its value."""
    cell_columns(schema.row_type.to_type_info())
    return [_reader(column, schema) for column in schema.columns]


def column_writers(schema: CsvSchema) -> list[Convert]:
    """Return a function per column from a value to its cell, with quotes where it needs them."""
    cell_columns(schema.row_type.to_type_info())
    return [_writer(column, schema) for column in schema.columns]


def rounded(data_type: DataType) -> Convert | None:
    """Return the conversion of decimals to the digits of their type, as Flink rounds them; None for other types.

    >>> rounded(DecimalType(2, 0))(Decimal("1.5"))
    Decimal('2')
    """
    if not isinstance(data_type, DecimalType):
        return None
    limit = Decimal(10) ** (data_type.precision - data_type.scale)

    def round_half_up(value: Decimal) -> Decimal:
        result = data_type.rounded(value)
        if abs(result) >= limit:
            raise must_be(data_type.sql_name(), str(value))
        return result

    return round_half_up


def _reader(column: CsvColumn, schema: CsvSchema) -> Convert:
    form = replace(schema.form, array_delimiter=column.separator)
    if isinstance(column.data_type, ArrayType) and not column.separator:
        element = cell_reader(column.data_type.element_type.to_type_info(), form)
        return lambda text: [element(text)]
    read = cell_reader(column.data_type.to_type_info(), form)
    return _then(read, rounded(column.data_type))


def _writer(column: CsvColumn, schema: CsvSchema) -> Convert:
    form = replace(schema.form, array_delimiter=column.separator or "\0")
    write = cell_writer(column.data_type.to_type_info(), form, cell_quoter(schema.form))
    if isinstance(column.data_type, DecimalType):
        convert = rounded(column.data_type)
        assert convert is not None
        return lambda value: format(convert(value), "f")
    return write


def _then(read: Convert, convert: Convert | None) -> Convert:
    if convert is None:
        return read

    def both(text: str) -> object:
        value = read(text)
        return None if value is None else convert(value)

    return both
