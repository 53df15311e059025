"""The Python data source `rekindle`: a checkpoint's state as a table, read in Spark tasks by ranges of key groups.

spark.read.format("rekindle").option("path", "…/savepoint-1a2b").option("operator", "orders").load()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rekindle.checkpoint.store.open_store import absolute, place_of
from rekindle.errors import ConfigurationError
from rekindle.serde.class_free_decoding import frozen
from rekindle.snapshots.find_snapshot import find_snapshot
from rekindle.snapshots.table import ReadOptions, StateTable
from rekindle.snapshots.tables import TableName, table_of
from rekindle.spark.shape_types import arrow_columns, spark_schema

FORMAT: Final = "rekindle"
#: Options that begin so are the store's own.
STORE_PREFIX: Final = "store."
_BATCH_ROWS: Final = 4096
_KNOWN: Final = frozenset(
    {
        *("path", "checkpoint_id", "table", "operator", "state", "states", "key"),
        *("untyped", "json", "access_times", "allow_pickle", "digests", "splits"),
    }
)
_FLAGS: Final = {"true": True, "false": False}


class StateDataSource(DataSource):
    """`spark.read.format("rekindle")`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the table that the options name."""
        return spark_schema(planned(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the table; a given schema must be the table's own."""
        table = planned(self.options)
        own = spark_schema(table.columns)
        if [field.name for field in schema] != own.names:
            raise ConfigurationError(f"The table has the columns {', '.join(own.names)}: leave the schema out.")
        return StateTableReader(table)


class StateSplit(InputPartition):
    """A part of the table for one Spark task."""


class StateTableReader(DataSourceReader):
    """Reads the splits of a table."""

    def __init__(self, table: StateTable) -> None:
        self._splits = [StateSplit(split) for split in table.splits()]
        self._table = table

    def __getstate__(self) -> dict[str, Any]:
        return {"_table": self._table}  # a task gets the one split that it reads

    def partitions(self) -> list[InputPartition]:
        """One Spark task per split."""
        return list(self._splits)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a split, as Arrow batches."""
        if partition.value is None:  # Spark's stand-in for no partitions
            return
        yield from arrow_batches(self._table, partition.value)


def arrow_batches(table: StateTable, split: Any) -> Iterator[Any]:
    """The rows of a split, some thousand at a time."""
    schema, rows = arrow_columns(table.columns), table.rows(split)
    while batch := list(islice(rows, _BATCH_ROWS)):
        columns = zip(*batch, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_table(table: StateTable) -> Any:
    """A whole table as Arrow's, in this process: for small ones."""
    batches = [batch for split in table.splits() for batch in arrow_batches(table, split)]
    return pa.Table.from_batches(batches, arrow_columns(table.columns))


def planned(options: Mapping[str, str]) -> StateTable:
    """The table that the options name."""
    given = {name.lower(): value for name, value in options.items()}
    unknown = [name for name in given if name not in _KNOWN and not name.startswith(STORE_PREFIX)]
    if unknown:
        raise ConfigurationError(
            f"The format {FORMAT} has no option '{unknown[0]}': it has {', '.join(sorted(_KNOWN))}, {STORE_PREFIX}…"
        )
    if not given.get("path"):
        raise ConfigurationError("Name the checkpoint or savepoint: .option('path', …) or .load(path).")
    path = absolute(given["path"])
    scheme = place_of(path).scheme.replace("s3a", "s3")
    own = {name.removeprefix(STORE_PREFIX): value for name, value in given.items() if name.startswith(STORE_PREFIX)}
    snapshot = find_snapshot(path, _number(given, "checkpoint_id"), {scheme: own})
    return table_of(snapshot, _table_name(given), given.get("operator"), read_options(given))


def _table_name(given: Mapping[str, str]) -> TableName:
    name = given.get("table") or (TableName.KEYED_STATE if "operator" in given else TableName.OPERATORS)
    try:
        return TableName(name)
    except ValueError:
        raise ConfigurationError(f"There is no table '{name}': use one of {', '.join(TableName)}.") from None


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """The options of a table, from their texts."""
    states = (given["state"],) if "state" in given else _names(given["states"]) if "states" in given else None
    if given.get("untyped", "inferred") not in ("inferred", "json"):
        raise ConfigurationError(f"untyped is inferred or json, not {given['untyped']}.")
    return ReadOptions(
        states=states,
        key=_key(given["key"]) if "key" in given else None,
        untyped_as_json=given.get("untyped") == "json",
        all_as_json=_flag(given, "json"),
        access_times=_flag(given, "access_times"),
        allow_pickle=_flag(given, "allow_pickle"),
        digests=_flag(given, "digests"),
        splits=_number(given, "splits"),
    )


def _names(text: str) -> tuple[str, ...]:
    """Names with commas between them, or a JSON array of names that have commas themselves."""
    if text.startswith("["):
        return tuple(msgspec.json.decode(text, type=list[str]))
    return tuple(name.strip() for name in text.split(","))


def _key(text: str) -> tuple[Any]:
    """A key as JSON, an array for a tuple; anything else is taken as the text of a key."""
    try:
        return (frozen(msgspec.json.decode(text)),)
    except msgspec.DecodeError:
        return (text,)


def _number(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    try:
        return int(given[name])
    except ValueError:
        raise ConfigurationError(f"{name} is a number, not '{given[name]}'.") from None


def _flag(given: Mapping[str, str], name: str) -> bool:
    value = given.get(name, "false").lower()
    if value not in _FLAGS:
        raise ConfigurationError(f"{name} is true or false, not '{value}'.")
    return _FLAGS[value]
