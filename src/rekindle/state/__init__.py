"""State of checkpoints and savepoints as Spark DataFrames: read it, compare it, write new savepoints.

    from rekindle import state

    savepoint = state.read("savepoints/savepoint-1a2b3c-4d5e6f")
    savepoint.keyed_state("orders").show()

See `docs/guide/state_tables.md`. Flink's State Processor API has the same under its own class names.
"""

from __future__ import annotations

from rekindle.spark.state_processor import (
    OperatorIdentifier,
    OperatorTransformation,
    SavepointReader,
    SavepointWriter,
    StateBootstrapTransformation,
    new_savepoint,
)
from rekindle.spark.state_snapshot import StateSnapshot, read
from rekindle.spark.state_writer import StateWriter

__all__ = [
    "read",
    "new_savepoint",
    "StateSnapshot",
    "StateWriter",
    "SavepointReader",
    "SavepointWriter",
    "OperatorIdentifier",
    "OperatorTransformation",
    "StateBootstrapTransformation",
]
