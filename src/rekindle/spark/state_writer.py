"""A writer of new savepoints, in the manner of `DataFrame.write` (`rekindle.state`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame, SparkSession

from rekindle.checkpoint.manifest import Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.part_formats import ListDistribution, OperatorStatePart
from rekindle.checkpoint.store.options import StoreOptions
from rekindle.clock import Clock, SystemClock
from rekindle.common.typeinfo import infer_type_info
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from rekindle.errors import CheckpointError, IncompatibleStateError
from rekindle.graph.uid import operator_id
from rekindle.serde.type_schema import encode_schema
from rekindle.snapshots.find_snapshot import Snapshot, operator_of
from rekindle.snapshots.group_parts import KeyedBuilder, TimerBuilder
from rekindle.snapshots.key_columns import KEY, KEY_GROUP, WINDOW, is_windowed
from rekindle.snapshots.keyed_table import KeyedTable
from rekindle.snapshots.operator_lists import (
    described_list,
    described_map,
    owners_of,
    stored_list,
    stored_map,
    with_part,
)
from rekindle.snapshots.operator_tables import broadcast_table, list_table, operator_parts
from rekindle.snapshots.row_encoder import DeclaredKeys, RowPlan, StatePlan, StoredKeys
from rekindle.snapshots.shapes import Shape
from rekindle.snapshots.state_columns import StateColumn
from rekindle.snapshots.table import ReadOptions
from rekindle.snapshots.timer_table import TimerTable
from rekindle.spark.savepoint_builder import OperatorDraft, RowsToWrite, SavepointBuilder

_DEFAULT_MAX_PARALLELISM: Final = 128
_DEFAULT_PARALLELISM: Final = 4
_FIXED: Final = (KEY_GROUP, WINDOW)
_NO_MANIFEST: Final = Manifest(ManifestKind.SAVEPOINT, 0, "", "", "", 0, 0)


class StateWriter:
    """Collects changes, and writes them with `save` as a new savepoint that the engine restores.

    Operators that no call names stay as they are. Methods change the writer and return it.
    """

    def __init__(
        self,
        spark: SparkSession,
        base: Snapshot | None,
        options: StoreOptions,
        max_parallelism: int = _DEFAULT_MAX_PARALLELISM,
        clock: Clock | None = None,
    ) -> None:
        self._spark = spark
        self._base = base
        self._options = options
        self._max_parallelism = max_parallelism
        self._clock = clock or SystemClock()
        operators = base.manifest.operators if base is not None else []
        self._drafts = {state.uid: OperatorDraft(state, base) for state in operators}

    def keyed_state(
        self,
        operator: str,
        df: DataFrame,
        states: Sequence[StateDescriptor] = (),
        *,
        key: str = KEY,
        key_type: Any = None,
        parallelism: int | None = None,
    ) -> StateWriter:
        """Replace keyed states of an operator by the rows of a DataFrame: all keys of these states, one row each.

        Each column besides the key's is a state: one that the operator has keeps its type, any other needs its
        descriptor in `states`. States without a column stay as they are. A null is no state of that key. An operator
        that is not there is added; `key_type` is the type that the program's `key_by` declares for its keys, if any.
        """
        draft = self._draft(operator, parallelism)
        table = self._keyed_table(draft)
        keys = self._keys(draft, table, key_type)
        columns = [name for name in df.columns if name not in (key, *_FIXED)]
        plans = self._state_plans(draft.state, table, states, columns, keys)
        plan = RowPlan(keys, key, draft.state.parallelism, self._clock.wall_ms(), plans)
        _require(df, plan, operator)
        heads = [state.head() for state in plans]
        rows = RowsToWrite("keyed", df, plan, KeyedBuilder(heads, {head.name for head in heads}))
        return self._add_rows(draft, rows)

    def timers(self, operator: str, df: DataFrame, *, key: str = KEY, key_type: Any = None) -> StateWriter:
        """Replace all timers of an operator: key, domain (`event` or `processing`), time_ms, and window if it has."""
        draft = self._draft(operator, None)
        keys, window = self._timer_keys(draft, key_type)
        plan = RowPlan(keys, key, draft.state.parallelism, self._clock.wall_ms(), timer_window=window)
        _require(df, plan, operator)
        return self._add_rows(draft, RowsToWrite("timers", df, plan, TimerBuilder(encode_schema(keys.schema))))

    def list_state(
        self, operator: str, state: str | ListStateDescriptor, df: DataFrame, *, union: bool = False
    ) -> StateWriter:
        """Replace a list of an operator by the column `value`; `subtask`, if there, says whose list it is.

        A new list needs its descriptor; `union`: every subtask gets all elements.
        """
        draft, rows = self._draft(operator, None), _collected(df)
        if isinstance(state, str):
            part = self._part(draft, state, ListDistribution.SPLIT, ListDistribution.UNION)
            shape = list_table(self._existing(), draft.state, state, ReadOptions()).columns[-1].shape
            changed = stored_list(part, shape, rows)
        else:
            changed = described_list(state, union, rows)
        draft.state = with_part(draft.origin, draft.state, changed, owners_of(rows))
        return self

    def broadcast_state(self, operator: str, state: str | MapStateDescriptor, df: DataFrame) -> StateWriter:
        """Replace a broadcast map of an operator by the columns `key` and `value`; a new one needs its descriptor."""
        draft, rows = self._draft(operator, None), _collected(df)
        if isinstance(state, str):
            part = self._part(draft, state, ListDistribution.BROADCAST)
            columns = broadcast_table(self._existing(), draft.state, state, ReadOptions()).columns
            changed = stored_map(part, (columns[0].shape, columns[1].shape), rows)
        else:
            changed = described_map(state, rows)
        draft.state = with_part(draft.origin, draft.state, changed, [])
        return self

    def remove(self, operator: str) -> StateWriter:
        """Leave an operator's state out."""
        del self._drafts[self._known(operator).state.uid]
        return self

    def rename(self, operator: str, uid: str) -> StateWriter:
        """Give an operator's state another uid."""
        draft, new = self._known(operator), operator_id(uid)
        if new in self._drafts:
            raise CheckpointError(f"There is an operator with the uid '{uid}' already: remove it first.")
        draft.state = msgspec.structs.replace(draft.state, uid=new)
        self._drafts = {each.state.uid: each for each in self._drafts.values()}
        return self

    def save(self, path: str) -> str:
        """Write the savepoint into a new folder; returns its URL, for `execution.state-recovery.path`."""
        builder = SavepointBuilder(self._base, self._options, self._clock)
        return builder.write(path, list(self._drafts.values()))

    # -- operators -----------------------------------------------------------------------------------------------------

    def _known(self, operator: str) -> OperatorDraft:
        states = [draft.state for draft in self._drafts.values()]
        return self._drafts[operator_of(msgspec.structs.replace(_NO_MANIFEST, operators=states), operator).uid]

    def _draft(self, operator: str, parallelism: int | None) -> OperatorDraft:
        """The operator's draft; a new one if there is none."""
        if not self._has(operator):
            new = OperatorDraft(self._new_operator(operator, parallelism))
            return self._drafts.setdefault(new.state.uid, new)
        draft = self._known(operator)
        if parallelism not in (None, draft.state.parallelism):
            raise CheckpointError(
                f"The state of '{operator}' has parallelism {draft.state.parallelism} and keeps it; the job that "
                "restores it may have another."
            )
        return draft

    def _has(self, operator: str) -> bool:
        return any(
            operator == draft.state.name or draft.state.uid in (operator, operator_id(operator))
            for draft in self._drafts.values()
        )

    def _new_operator(self, uid: str, parallelism: int | None) -> OperatorState:
        most = self._max_parallelism
        count = min(most, parallelism or _DEFAULT_PARALLELISM)
        subtasks = [SubtaskState(subtask) for subtask in range(count)]
        return OperatorState(operator_id(uid), uid, count, most, subtasks)

    def _existing(self) -> Snapshot:
        assert self._base is not None, "an existing state has a savepoint"
        return self._base

    def _keyed_table(self, draft: OperatorDraft) -> KeyedTable | None:
        has_keyed = draft.origin is not None and any(subtask.keyed for subtask in draft.state.subtasks)
        return KeyedTable(draft.origin, draft.state, _ALL) if has_keyed and draft.origin is not None else None

    def _keys(self, draft: OperatorDraft, table: KeyedTable | None, key_type: Any) -> StoredKeys | DeclaredKeys:
        most = draft.state.max_parallelism
        if is_windowed(draft.state) and (table is None or key_type is not None):
            raise IncompatibleStateError(
                f"Operator '{draft.state.name}' has windows: only state that it has can be changed, without a key_type."
            )
        if table is None or key_type is not None:
            return DeclaredKeys(None if key_type is None else infer_type_info(key_type), most)
        return StoredKeys(table.keys, table.hashed, most)

    def _timer_keys(self, draft: OperatorDraft, key_type: Any) -> tuple[StoredKeys | DeclaredKeys, Shape | None]:
        """How timers are keyed: as those that are there, else as keyed state is."""
        if draft.origin is not None and any(subtask.timers for subtask in draft.state.subtasks):
            table = TimerTable(draft.origin, draft.state, _ALL)
            return StoredKeys(table.keys, table.hashed, draft.state.max_parallelism), table.window
        if is_windowed(draft.state):
            raise IncompatibleStateError(f"Operator '{draft.state.name}' has windows, but no timers to change.")
        return self._keys(draft, self._keyed_table(draft), key_type), None

    def _state_plans(
        self,
        operator: OperatorState,
        table: KeyedTable | None,
        described: Sequence[StateDescriptor],
        columns: Sequence[str],
        keys: StoredKeys | DeclaredKeys,
    ) -> list[StatePlan]:
        stored: Sequence[StateColumn] = [] if table is None else table.states
        sources: list[StateColumn | StateDescriptor] = [*stored, *described]
        plans = {plan.column: plan for plan in (StatePlan(each, keys.schema) for each in sources)}
        unknown = [name for name in columns if name not in plans]
        if unknown:
            there = ", ".join(plans) or "none"
            raise IncompatibleStateError(
                f"The column '{unknown[0]}' is no state of operator '{operator.name}' (it has: {there}): drop it, or "
                "give the state's descriptor."
            )
        missing = [each.name for each in described if StatePlan(each, keys.schema).column not in columns]
        if missing:
            raise IncompatibleStateError(f"The DataFrame has no column '{missing[0]}' for the state of that name.")
        return [plans[name] for name in columns]

    def _add_rows(self, draft: OperatorDraft, rows: RowsToWrite) -> StateWriter:
        if any(each.field == rows.field for each in draft.rows):
            raise CheckpointError(
                f"The {'timers' if rows.field == 'timers' else 'keyed states'} of '{draft.state.name}' are given "
                "twice: give them in one DataFrame."
            )
        draft.rows.append(rows)
        return self

    def _part(self, draft: OperatorDraft, state: str, *ways: ListDistribution) -> OperatorStatePart:
        parts = operator_parts(draft.origin, draft.state) if draft.origin is not None else ()
        for _, part in parts:
            if part.name == state and part.distribution in ways:
                return part
        raise IncompatibleStateError(
            f"Operator '{draft.state.name}' has no {' or '.join(ways)} state '{state}': give its descriptor to add it."
        )


_ALL: Final = ReadOptions()
_Rows = list[Mapping[str, Any]]


def _collected(df: DataFrame) -> _Rows:
    table = df.toArrow()
    rows: _Rows = table.to_pylist()
    return rows


def _require(df: DataFrame, plan: RowPlan, operator: str) -> None:
    missing = [name for name in plan.columns() if name not in df.columns]
    if missing:
        raise IncompatibleStateError(
            f"The DataFrame for operator '{operator}' lacks the column '{missing[0]}': it has {', '.join(df.columns)}."
        )
