"""DataFrames as sources: their partitions are read as extra tasks of the first stage (I10)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from rekindle.common.typeinfo import RowTypeInfo
from rekindle.common.types import Row, make_row
from rekindle.errors import ClusterError, TypeMismatchError
from rekindle.protocol import DESTINATION
from rekindle.spark import internals
from rekindle.spark.dataframe_types import arrow_schema, from_arrow, row_type_of
from rekindle.spark.pump import SPARK_KEY
from rekindle.spark.shuffle import StageInput

#: (partition, its rows) -> (destination slot, chunk) pairs; must be picklable.
ChunkEncoder: TypeAlias = Callable[[int, Iterator[Row]], Iterable[tuple[int, bytes]]]

_NOT_PERSISTED = StorageLevel(False, False, False, False, 1)


class DataFrameInput:
    """A batch DataFrame as a bounded source: persisted, so that a replay sees the same rows; read by partitions."""

    def __init__(self, df: DataFrame) -> None:
        self.type_info = dataframe_type(df)
        self._df = df
        self._sc = df.sparkSession.sparkContext
        self._schema = df.schema
        self._time_zone = df.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
        self._persisted_here = df.storageLevel == _NOT_PERSISTED
        if self._persisted_here:
            df.persist(StorageLevel.MEMORY_AND_DISK)
        # Select makes a new DataFrame: the given one's plan may have been made before it was persisted.
        self._batches = internals.arrow_batches(df.select("*"))
        self.partitions = int(self._batches.getNumPartitions())

    def rows_for(self, partitions: Collection[int], encode: ChunkEncoder) -> StageInput:
        """The tasks that read these partitions, each as a whole (I10); other partitions are not computed."""
        chosen = tuple(sorted(set(partitions)))
        assert all(0 <= partition < self.partitions for partition in chosen), f"{chosen} of {self.partitions}"
        task = PartitionTask(chosen, self._schema, self._time_zone, encode)
        return StageInput(internals.select_partitions(self._sc, self._batches, chosen), task)

    def close(self) -> None:
        """Unpersist the DataFrame, unless the user had persisted it."""
        if self._persisted_here:
            self._df.unpersist()


class PartitionTask:
    """Runs in Spark's Python worker: turns a partition's Arrow batches into chunks, each with its destination slot."""

    def __init__(
        self, partitions: tuple[int, ...], schema: st.StructType, time_zone: str, encode: ChunkEncoder
    ) -> None:
        self.partitions = partitions
        self.schema = schema
        self.time_zone = time_zone
        self.encode = encode

    def __call__(self, index: int, batches: Iterable[bytes]) -> Iterator[bytes]:
        rows = rows_of(batches, self.schema, self.time_zone)
        for slot, chunk in self.encode(self.partitions[index], rows):
            yield SPARK_KEY.pack(slot)
            yield DESTINATION.pack(slot) + chunk


def rows_of(batches: Iterable[bytes], schema: st.StructType, time_zone: str) -> Iterator[Row]:
    """The rows in Spark's Arrow batches, converted column by column."""
    names = list(schema.names)
    conversions = [from_arrow(field.dataType) for field in schema.fields]
    arrow = arrow_schema(schema, time_zone)
    for data in batches:
        batch = pa.ipc.read_record_batch(pa.py_buffer(data), arrow)
        if not names:
            yield from (make_row([], []) for _ in range(batch.num_rows))
            continue
        columns = [
            values if convert is None else map(convert, values)
            for values, convert in zip(map(_to_list, batch.columns), conversions, strict=True)
        ]
        for values in zip(*columns, strict=True):
            yield make_row(names, list(values))


def _to_list(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


def dataframe_type(df: DataFrame) -> RowTypeInfo:
    """The type of the rows of a stream that is made from this DataFrame."""
    refuse_other_dataframes(df)
    return row_type_of(df.schema)


def refuse_other_dataframes(df: Any) -> None:
    """Refuse everything but classic batch DataFrames: others cannot be read by partitions."""
    if not isinstance(df, DataFrame):
        raise TypeMismatchError(f"from_dataframe takes a Spark DataFrame, not {type(df).__name__}.")
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise ClusterError("This DataFrame comes over Spark Connect, which has no RDDs: make it on a classic session.")
    if df.sparkSession.sparkContext._jsc is None:
        raise ClusterError("This DataFrame's Spark session was stopped: make it again on the active session.")
    if df.isStreaming:
        raise ClusterError("This DataFrame is a stream of Spark's own: from_dataframe takes batch DataFrames.")
