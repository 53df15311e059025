"""The tables of a checkpoint by their names, as `spark.read.format("rekindle")` knows them."""

from __future__ import annotations

from enum import StrEnum

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import OperatorState
from rekindle.errors import ConfigurationError
from rekindle.snapshots.find_snapshot import operator_of
from rekindle.snapshots.keyed_table import KeyedTable
from rekindle.snapshots.operator_tables import broadcast_table, list_table, positions_table, watermarks_table
from rekindle.snapshots.overview_tables import metadata_table, operators_table, states_table
from rekindle.snapshots.table import ReadOptions, StateTable
from rekindle.snapshots.timer_table import TimerTable


class TableName(StrEnum):
    """The names of a checkpoint's tables."""

    KEYED_STATE = "keyed_state"
    LIST_STATE = "list_state"
    BROADCAST_STATE = "broadcast_state"
    TIMERS = "timers"
    SOURCE_POSITIONS = "source_positions"
    WATERMARKS = "watermarks"
    METADATA = "metadata"
    OPERATORS = "operators"
    STATES = "states"


def table_of(snapshot: LoadedCheckpoint, name: TableName, operator: str | None, options: ReadOptions) -> StateTable:
    """Plan a table; the ones about an operator need its uid or name."""
    match name:
        case TableName.METADATA:
            return metadata_table(snapshot)
        case TableName.OPERATORS:
            return operators_table(snapshot)
        case TableName.STATES:
            return states_table(snapshot)
        case TableName.SOURCE_POSITIONS:
            return positions_table(snapshot, _some(snapshot, operator), options)
        case TableName.WATERMARKS:
            return watermarks_table(snapshot, _some(snapshot, operator))
    if operator is None:
        raise ConfigurationError(f"The table {name} is about one operator: name it by its uid or name.")
    own = operator_of(snapshot.manifest, operator)
    match name:
        case TableName.TIMERS:
            return TimerTable(snapshot, own, options)
        case TableName.KEYED_STATE:
            return KeyedTable(snapshot, own, options)
    if options.states is None or len(options.states) != 1:
        raise ConfigurationError(f"The table {name} is about one state: name it.")
    build = list_table if name is TableName.LIST_STATE else broadcast_table
    return build(snapshot, own, options.states[0], options)


def _some(snapshot: LoadedCheckpoint, operator: str | None) -> list[OperatorState]:
    return snapshot.manifest.operators if operator is None else [operator_of(snapshot.manifest, operator)]
