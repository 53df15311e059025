"""Flink's State Processor API under its class names: another spelling of `StateSnapshot` and `StateWriter`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rekindle.checkpoint.store.options import store_options
from rekindle.common.configuration import Configuration
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from rekindle.spark.state_snapshot import StateSnapshot, session_of
from rekindle.spark.state_writer import StateWriter


@dataclass(frozen=True)
class OperatorIdentifier:
    """The uid of an operator."""

    uid: str

    @staticmethod
    def for_uid(uid: str) -> OperatorIdentifier:
        """The operator with this uid."""
        return OperatorIdentifier(uid)


def _uid(operator: str | OperatorIdentifier) -> str:
    return operator.uid if isinstance(operator, OperatorIdentifier) else operator


class SavepointReader:
    """Reads the state of a savepoint or checkpoint as DataFrames, where Flink has DataStreams."""

    def __init__(self, snapshot: StateSnapshot) -> None:
        self._snapshot = snapshot

    @staticmethod
    def read(spark: SparkSession | None, path: str) -> SavepointReader:
        """The reader of the savepoint or checkpoint at a path; no session: the active one, or a new one."""
        return SavepointReader(StateSnapshot(path, spark=spark))

    def read_keyed_state(self, operator: str | OperatorIdentifier, *states: str) -> DataFrame:
        """A row per key, with a column for each state."""
        return self._snapshot.keyed_state(_uid(operator), states or None)

    def read_list_state(self, operator: str | OperatorIdentifier, name: str) -> DataFrame:
        """A row per element of a split list."""
        return self._snapshot.list_state(_uid(operator), name)

    def read_union_state(self, operator: str | OperatorIdentifier, name: str) -> DataFrame:
        """A row per element of a union list."""
        return self._snapshot.list_state(_uid(operator), name)

    def read_broadcast_state(self, operator: str | OperatorIdentifier, name: str) -> DataFrame:
        """A row per entry of a broadcast map."""
        return self._snapshot.broadcast_state(_uid(operator), name)


@dataclass(frozen=True)
class StateBootstrapTransformation:
    """Rows that become keyed state of an operator."""

    df: DataFrame
    key: str
    key_type: Any
    states: tuple[StateDescriptor, ...]


@dataclass(frozen=True)
class KeyedOperatorTransformation:
    """Rows by their key."""

    df: DataFrame
    key: str
    key_type: Any

    def transform(self, *states: StateDescriptor) -> StateBootstrapTransformation:
        """Each described state takes the column of its name."""
        return StateBootstrapTransformation(self.df, self.key, self.key_type, states)


@dataclass(frozen=True)
class OneInputOperatorTransformation:
    """Rows without a key."""

    df: DataFrame

    def key_by(self, column: str, key_type: Any = None) -> KeyedOperatorTransformation:
        """The rows by a column; `key_type` is the type that the program's `key_by` declares, if any."""
        return KeyedOperatorTransformation(self.df, column, key_type)


class OperatorTransformation:
    """Where a bootstrap begins."""

    @staticmethod
    def bootstrap_with(df: DataFrame) -> OneInputOperatorTransformation:
        """The rows of a DataFrame."""
        return OneInputOperatorTransformation(df)


class SavepointWriter:
    """Writes a new savepoint, from an existing one or from nothing."""

    def __init__(self, writer: StateWriter) -> None:
        self._writer = writer

    @staticmethod
    def new_savepoint(spark: SparkSession | None, max_parallelism: int) -> SavepointWriter:
        """A savepoint from nothing."""
        return SavepointWriter(new_savepoint(max_parallelism, spark=spark))

    @staticmethod
    def from_existing_savepoint(spark: SparkSession | None, path: str) -> SavepointWriter:
        """A savepoint that begins with the state of another one, or of a checkpoint."""
        return SavepointWriter(StateSnapshot(path, spark=spark).write)

    def with_operator(
        self, operator: str | OperatorIdentifier, transformation: StateBootstrapTransformation
    ) -> SavepointWriter:
        """Add keyed state of an operator, or replace the states that it names."""
        given = transformation
        self._writer.keyed_state(_uid(operator), given.df, given.states, key=given.key, key_type=given.key_type)
        return self

    def with_list_state(
        self, operator: str | OperatorIdentifier, state: ListStateDescriptor, df: DataFrame
    ) -> SavepointWriter:
        """Add or replace a split list."""
        self._writer.list_state(_uid(operator), state, df)
        return self

    def with_broadcast_state(
        self, operator: str | OperatorIdentifier, state: MapStateDescriptor, df: DataFrame
    ) -> SavepointWriter:
        """Add or replace a broadcast map."""
        self._writer.broadcast_state(_uid(operator), state, df)
        return self

    def remove_operator(self, operator: str | OperatorIdentifier) -> SavepointWriter:
        """Leave an operator's state out."""
        self._writer.remove(_uid(operator))
        return self

    def change_operator_identifier(
        self, old: str | OperatorIdentifier, new: str | OperatorIdentifier
    ) -> SavepointWriter:
        """Give an operator's state another uid."""
        self._writer.rename(_uid(old), _uid(new))
        return self

    def write(self, path: str) -> str:
        """Write the savepoint into a new folder; returns its URL."""
        return self._writer.save(path)


def new_savepoint(
    max_parallelism: int = 128, *, spark: SparkSession | None = None, configuration: Configuration | None = None
) -> StateWriter:
    """A writer of a savepoint from nothing, for jobs that begin with state from elsewhere.

    `max_parallelism` is the number of key groups, and the most subtasks that can ever share the state.
    """
    settings = configuration or Configuration()
    return StateWriter(session_of(spark, settings), None, store_options(settings), max_parallelism)
