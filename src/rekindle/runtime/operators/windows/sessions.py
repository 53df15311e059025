"""Event-time sessions with their default trigger: an element that prolongs a session only changes a number.

Flink merges windows, moves timers and writes the merged window with every element. Here a session is an object with a
deadline: the operator checks it when it would end, and postpones the deadline if it has grown. Rows, windows and timers
are written right before a snapshot, for the sessions that exist then. The snapshot equals the general operator's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rekindle.common.watermark_strategy import MAX_WATERMARK, NO_TIMESTAMP
from rekindle.datastream.windowing.operation import WindowOperation
from rekindle.datastream.windowing.session_assigners import SessionWindows
from rekindle.datastream.windowing.time_assigners import event_time_of
from rekindle.datastream.windowing.windows import TimeWindow
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.key_bytes import owned_key
from rekindle.runtime.list_keys import hashable_key
from rekindle.runtime.operators.keyed import Selector
from rekindle.runtime.operators.output import OperatorFailure, failed_record
from rekindle.runtime.operators.roles import PreparesSnapshot
from rekindle.runtime.operators.windows.contents import ValueContents
from rekindle.runtime.operators.windows.firing_order import Deadlines, in_firing_order
from rekindle.runtime.operators.windows.merging_windows import MergedWindowColumn
from rekindle.runtime.operators.windows.window_operator import WindowOperator
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.row_columns import YOUNG, is_young

NEVER = MAX_WATERMARK


class Session:
    """One session of one key."""

    __slots__ = ("active_from", "deadline", "end", "key", "row", "start", "timer")

    def __init__(self, key: Any, start: int, end: int, row: Row) -> None:
        self.key = key
        self.start = start
        self.end = end
        self.row = row
        #: The session's start while it waits for its end; NEVER once it has fired.
        self.active_from = start
        #: When the operator checks the session.
        self.deadline = NEVER
        #: The time of the session's timer in the last snapshot; NEVER if it has none.
        self.timer = NEVER


class SessionWindowOperator(WindowOperator, PreparesSnapshot):
    """Sessions, evaluated when they end and again with each late element."""

    shares_elements = False

    def __init__(
        self, node: OperatorNode, context: OperatorContext, operation: WindowOperation, selector: Selector
    ) -> None:
        super().__init__(node, context, operation, selector)
        assert isinstance(operation.assigner, SessionWindows)
        self._assigner = operation.assigner
        #: key -> its sessions, sorted by start
        self._sessions: dict[Any, list[Session]] = {}
        self._deadlines: Deadlines[Session] = Deadlines()

    def initialize_state(self, restored_id: int | None) -> None:
        super().initialize_state(restored_id)
        self._window_column = MergedWindowColumn(self.keyed)
        timers: dict[tuple[Any, Any], int] = {}
        for time, key, namespace in self.timers.event.all():
            timers[key, namespace] = min(time, timers.get((key, namespace), NEVER))
        for key, namespace, _, row in self._window_column.restored():
            start, end = namespace
            session = Session(key, start, end, row)
            session.timer = timers.get((key, namespace), NEVER)
            if session.timer != end - 1:
                session.active_from = NEVER
            self._sessions.setdefault(key, []).append(session)
            self._check_at(session, end - 1 if session.timer == end - 1 else self.cleanup_time(end - 1))
        for sessions in self._sessions.values():
            sessions.sort(key=_start)

    # -- elements -----------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        times = timestamps if timestamps is not None else [NO_TIMESTAMP] * len(records)
        remaining = iter(records)
        try:
            if isinstance(self.contents, ValueContents):
                self._combine_batch(self.contents, remaining, times)
            else:
                self._append_batch(remaining, times)
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        self.collector.flush()

    def _combine_batch(self, contents: ValueContents, records: Iterator[Any], times: list[int]) -> None:
        selector, find, generation = self.selector, self._sessions.get, self.keyed.generation
        combine, gap_of, fixed_gap = contents.combine, self._assigner.gap_of, self._assigner.fixed_gap
        place, marked = contents.column.place, contents.column.mark
        for record, start in zip(records, times, strict=True):
            end = start + (fixed_gap or gap_of(record))
            key = selector(record)
            try:
                sessions = find(key)
            except TypeError:
                sessions = find(key := hashable_key(key))
            if sessions is not None:
                session = sessions[-1]
                if session.active_from <= start <= session.end:
                    # The element prolongs the latest session: by far the most frequent case.
                    if end > session.end:
                        session.end = end
                    row = session.row
                    held = row[place]
                    if held is None:
                        contents.add(row, record, start)
                        continue
                    value = row[place] = combine(record, held)
                    mark = row[marked]
                    if (mark is not YOUNG and mark is not generation) or value is None:
                        contents.put(row, value)
                    continue
            self._add(key, sessions, start, end, record)

    def _append_batch(self, records: Iterator[Any], times: list[int]) -> None:
        selector, find, add = self.selector, self._sessions.get, self.contents.add
        gap_of, fixed_gap = self._assigner.gap_of, self._assigner.fixed_gap
        for record, start in zip(records, times, strict=True):
            end = start + (fixed_gap or gap_of(record))
            key = selector(record)
            try:
                sessions = find(key)
            except TypeError:
                sessions = find(key := hashable_key(key))
            if sessions is not None:
                session = sessions[-1]
                if session.active_from <= start <= session.end:
                    if end > session.end:
                        session.end = end
                    add(session.row, record, start)
                    continue
            self._add(key, sessions, start, end, record)

    def _add(self, key: Any, sessions: list[Session] | None, start: int, end: int, record: Any) -> None:
        """Add an element to a new session, or to the one into which all sessions that it meets are merged."""
        event_time_of(self._assigner, start)
        watermark = self.current_watermark
        met = [each for each in sessions if each.start <= end and each.end >= start] if sessions else []
        if met:
            session = self._merge(met, start, end)
            self.contents.add(session.row, record, start)
        elif self.cleanup_time(end - 1) <= watermark:
            if start + self.lateness <= watermark:
                self.drop_late(record, start)
            return
        else:
            session = self._add_session(key, sessions, start, end, record)
        last = session.end - 1
        if last > watermark:
            session.active_from = session.start
            self._check_at(session, last)
        else:
            session.active_from = NEVER
            self._check_at(session, self.cleanup_time(last))
            self._evaluate_session(session)

    def _add_session(self, key: Any, sessions: list[Session] | None, start: int, end: int, record: Any) -> Session:
        key = owned_key(key)
        session = Session(key, start, end, self.contents.young(record, start))
        if sessions is None:
            self._sessions[key] = [session]
        else:
            sessions.append(session)
            if sessions[-2].start > start:
                sessions.sort(key=_start)
        return session

    def _merge(self, met: list[Session], start: int, end: int) -> Session:
        """Merge sessions into the first one, with their contents."""
        session = met[0]
        session.start = min(start, session.start)
        session.end = max(end, met[-1].end)
        for other in met[1:]:
            self.contents.merge(session.row, self.contents.raw(other.row))
            self._remove(other)
        return session

    def _remove(self, session: Session) -> None:
        """Remove a session with its contents and its timer."""
        session.deadline = NEVER
        row = session.row
        if not is_young(row):
            namespace = self._window_column.get(row)
            self.timers.delete_event_time(session.timer, session.key, namespace)
            self.contents.clear(row)
            self._window_column.remove(row)
        sessions = self._sessions[session.key]
        if len(sessions) == 1:
            del self._sessions[session.key]
        else:
            sessions.remove(session)

    def _check_at(self, session: Session, time: int) -> None:
        """Check the session at this time, or earlier, which does no harm."""
        if time < session.deadline:
            session.deadline = time
            self._deadlines.add(time, session)

    # -- firing -------------------------------------------------------------------------------------------------------

    def first_processing_time(self) -> int | None:
        """Return None: sessions of event time do not wait for the clock."""
        return None

    def fire_processing_time(self, passed_ms: int) -> Iterator[int]:
        return iter(())

    def fire_event_time(self, watermark: int) -> Iterator[int]:
        for time, checked in self._deadlines.due(watermark):
            due: dict[Any, list[Session]] = {}
            for session in checked:
                if session.deadline == time:
                    session.deadline = NEVER
                    last = session.end - 1
                    if last > time:
                        self._check_at(session, last)  # the session has grown
                    else:
                        due.setdefault(session.key, []).append(session)
            for key in in_firing_order(due) if len(due) > 1 else due:
                for session in due[key]:
                    self._on_deadline(session, time)
            yield time
        self.timers.event.drop_due(watermark)

    def _on_deadline(self, session: Session, time: int) -> None:
        if session.active_from != NEVER:
            session.active_from = NEVER
            self._evaluate_session(session)
        cleanup = self.cleanup_time(session.end - 1)
        if time == cleanup:
            self._clean_up(session)
        else:
            self._check_at(session, cleanup)

    def _evaluate_session(self, session: Session) -> None:
        contents = self.contents
        if self.function is None and isinstance(contents, ValueContents):
            self.collector.add(contents.result(contents.raw(session.row)), session.end - 1)
        else:
            namespace = session.start, session.end
            self.evaluate(session.key, namespace, TimeWindow(*namespace), contents.evaluated(session.row))

    def _clean_up(self, session: Session) -> None:
        self._remove(session)
        if self.clears:
            namespace = session.start, session.end
            self.clear_user_state(session.key, namespace, TimeWindow(*namespace))

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Write new sessions, windows that have grown, and their timers."""
        column = self._window_column
        for sessions in self._sessions.values():
            for session in sessions:
                namespace = session.start, session.end
                if is_young(session.row):
                    session.row = self.contents.adopt(session.row, session.key, namespace)
                saved = column.get(session.row)
                last = session.end - 1
                time = self.cleanup_time(last) if session.active_from == NEVER else last
                if saved == namespace and session.timer == time:
                    continue
                if session.timer != NEVER:
                    self.timers.delete_event_time(session.timer, session.key, saved)
                column.set(session.row, namespace)
                session.timer = time
                if time != NEVER:
                    self.timers.register_event_time(time, session.key, namespace)


def _start(session: Session) -> int:
    return session.start
