"""A checkpoint or savepoint whose state is read as DataFrames (`rekindle.state.read`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from rekindle.checkpoint.manifest import OperatorState
from rekindle.checkpoint.paths import url_of
from rekindle.checkpoint.store.open_store import absolute
from rekindle.checkpoint.store.options import StoreOptions, options_for, store_options
from rekindle.common.configuration import Configuration
from rekindle.snapshots.find_snapshot import Snapshot, find_snapshot
from rekindle.snapshots.table import ListedTable
from rekindle.snapshots.tables import TableName
from rekindle.spark.compare_state import change_counts, changes, union_of_counts
from rekindle.spark.shape_types import spark_schema
from rekindle.spark.shared_session import lease_session
from rekindle.spark.state_source import FORMAT, STORE_PREFIX, StateDataSource, arrow_table, planned
from rekindle.spark.state_writer import StateWriter


def session_of(spark: SparkSession | None, configuration: Configuration) -> SparkSession:
    """The given session, else the active one, else one of our own; it knows the format `rekindle`."""
    session = spark or SparkSession.getActiveSession() or lease_session(configuration).spark
    session.dataSource.register(StateDataSource)
    return session


class StateSnapshot:
    """The state of a checkpoint or savepoint, as DataFrames. Spark reads keyed state and timers when they are used.

    Operators are named by their uid, or by their name if only one has it.
    """

    def __init__(
        self,
        path: str,
        checkpoint_id: int | None = None,
        spark: SparkSession | None = None,
        configuration: Configuration | None = None,
        allow_pickle: bool = False,
    ) -> None:
        """Use `read`, which explains the arguments."""
        self._configuration = configuration or Configuration()
        self._options: StoreOptions = store_options(self._configuration)
        self._snapshot: Snapshot = find_snapshot(absolute(path), checkpoint_id, self._options)
        self._given_session = spark
        self._allow_pickle = allow_pickle

    @cached_property
    def _spark(self) -> SparkSession:
        return session_of(self._given_session, self._configuration)

    @property
    def path(self) -> str:
        """The URL of the checkpoint or savepoint."""
        return url_of(self._snapshot.store, self._snapshot.path)

    @property
    def checkpoint_id(self) -> int:
        """The id of the checkpoint."""
        return self._snapshot.manifest.checkpoint_id

    # -- what it is ----------------------------------------------------------------------------------------------------

    def metadata(self) -> DataFrame:
        """One row: kind, id, job, timeline, time, sizes."""
        return self._table(TableName.METADATA)

    def operators(self) -> DataFrame:
        """A row per operator: uid, name, parallelism, the kinds of its state, sizes."""
        return self._table(TableName.OPERATORS)

    def states(self) -> DataFrame:
        """A row per state of any operator: its kind and type."""
        return self._table(TableName.STATES)

    # -- its state -----------------------------------------------------------------------------------------------------

    def keyed_state(
        self,
        operator: str,
        states: Sequence[str] | None = None,
        *,
        key: Any = None,
        untyped: str = "inferred",
        json: bool = False,
        access_times: bool = False,
        splits: int | None = None,
    ) -> DataFrame:
        """A row per key, or per key and window, with a column for each state; lists are arrays, maps are maps.

        `key` reads one key, and only its key group; a tuple is a compound key. `untyped="json"` shows values without a
        declared type as JSON instead of looking at some of them, `json` shows all states as JSON. `access_times` shows
        state with a time to live as structs of the time of last access and the value. `splits` is the number of Spark
        tasks.
        """
        options = {"untyped": untyped, "json": str(json).lower(), "access_times": str(access_times).lower()}
        if states is not None:
            options["states"] = msgspec.json.encode(list(states)).decode()
        if key is not None:
            options["key"] = msgspec.json.encode(key).decode()
        if splits is not None:
            options["splits"] = str(splits)
        return self._table(TableName.KEYED_STATE, operator, options)

    def list_state(self, operator: str, state: str, *, untyped: str = "inferred") -> DataFrame:
        """A row per element of a list of the operator, split or union, with its subtask."""
        return self._table(TableName.LIST_STATE, operator, {"state": state, "untyped": untyped})

    def broadcast_state(self, operator: str, state: str, *, untyped: str = "inferred") -> DataFrame:
        """A row per entry of a broadcast map."""
        return self._table(TableName.BROADCAST_STATE, operator, {"state": state, "untyped": untyped})

    def timers(self, operator: str) -> DataFrame:
        """A row per timer: key, domain (`event` or `processing`), time, window."""
        return self._table(TableName.TIMERS, operator)

    def source_positions(self, operator: str | None = None) -> DataFrame:
        """A row per split of a source, or of all sources, with its position."""
        return self._table(TableName.SOURCE_POSITIONS, operator)

    def watermarks(self, operator: str | None = None) -> DataFrame:
        """A row per task: its watermark, and whether it is idle."""
        return self._table(TableName.WATERMARKS, operator)

    def compare(
        self, later: StateSnapshot, operator: str | None = None, states: Sequence[str] | None = None
    ) -> DataFrame:
        """The keys of an operator that were added, removed or changed up to a later checkpoint.

        Columns: change, key (and window), the names of the states that changed, the states before and after. Without
        an operator: a row per operator with keyed state, with the numbers of keys added, removed and changed.
        """
        if operator is not None:
            return changes(self._digests(operator, states), later._digests(operator, states))
        names = {state.uid: state.name for each in (self, later) for state in each._keyed_operators()}
        sides = [{state.uid for state in each._keyed_operators()} for each in (self, later)]
        counted = []
        for uid, name in names.items():
            before, after = (
                each._digests(uid) if uid in own else None for each, own in zip((self, later), sides, strict=True)
            )
            counted.append(change_counts(uid, name, before, after))
        return union_of_counts(self._spark, counted)

    def _digests(self, operator: str, states: Sequence[str] | None = None) -> DataFrame:
        options = {"digests": "true"}
        if states is not None:
            options["states"] = msgspec.json.encode(list(states)).decode()
        return self._table(TableName.KEYED_STATE, operator, options)

    def _keyed_operators(self) -> list[OperatorState]:
        operators = self._snapshot.manifest.operators
        return [state for state in operators if any(subtask.keyed for subtask in state.subtasks)]

    # -- new savepoints ------------------------------------------------------------------------------------------------

    @property
    def write(self) -> StateWriter:
        """A writer of a new savepoint that begins with this state; see `StateWriter`."""
        return StateWriter(self._spark, self._snapshot, self._options)

    def _table(self, name: TableName, operator: str | None = None, more: Mapping[str, str] | None = None) -> DataFrame:
        options = {"path": self.path, "table": str(name), "allow_pickle": str(self._allow_pickle).lower()}
        if operator is not None:
            options["operator"] = operator
        store = {STORE_PREFIX + key: value for key, value in options_for(self.path, self._options).items()}
        options |= store | dict(more or {})
        # Planned here, so that errors are ours and not Spark's.
        table = planned(options)
        schema = spark_schema(table.columns)
        if isinstance(table, ListedTable):
            # Its rows are here already: a Python data source would start three workers to read them once more.
            return self._spark.createDataFrame(arrow_table(table), schema)
        return self._spark.read.format(FORMAT).schema(schema).options(**options).load()

    def __repr__(self) -> str:
        manifest = self._snapshot.manifest
        return f"<{manifest.kind} {manifest.checkpoint_id} of job '{manifest.job_name}' at {self.path}>"


def read(
    path: str,
    *,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    configuration: Configuration | None = None,
    allow_pickle: bool = False,
) -> StateSnapshot:
    """The state of a checkpoint or savepoint, by its own path, or by its job's folder, then the newest or one by id.

    `spark`: the session to read with; the active one if it is left out, else a new one. `configuration` has the
    settings of object stores. `allow_pickle` unpickles values that were pickled: only for checkpoints of a trusted
    origin, because that runs code that they bring; else such values are shown as their bytes.
    """
    return StateSnapshot(path, checkpoint_id, spark, configuration, allow_pickle)
