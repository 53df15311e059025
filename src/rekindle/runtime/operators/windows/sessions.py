"""Sessions of event time with their own trigger: an element that prolongs a session changes a number.

Flink merges windows, moves timers and writes the merged window with every element. Here a session is an object: its
timer stays where it is until it fires, and is set anew if the session has grown; the window is written when a snapshot
is about to be taken. In a snapshot there is no difference to the general operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rekindle.datastream.windowing.operation import WindowOperation
from rekindle.datastream.windowing.session_assigners import _FixedGap, _Sessions
from rekindle.datastream.windowing.time_assigners import event_time_of
from rekindle.datastream.windowing.windows import TimeWindow
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.exchange.chunk import NO_TIMESTAMP
from rekindle.runtime.keys import owned_key
from rekindle.runtime.operators.base import MAX_WATERMARK, OUTPUT_RECORDS, OperatorFailure, failed_record
from rekindle.runtime.operators.keyed import Selector
from rekindle.runtime.operators.windows.contents import (
    CONTENTS,
    CONTENTS_MARK,
    AggregatedContents,
    ElementContents,
    ReducedContents,
)
from rekindle.runtime.operators.windows.merging import MergedWindowColumn
from rekindle.runtime.operators.windows.operator import WindowOperator
from rekindle.runtime.state.changes import Row


class Session:
    """One session of one key."""

    __slots__ = ("end", "key", "row", "start", "timer", "timer_end", "timer_start", "unsaved")

    def __init__(self, key: Any, start: int, end: int, row: Row) -> None:
        self.key = key
        self.start = start
        self.end = end
        self.row = row
        #: When its timer comes; MAX_WATERMARK: it has none. The timer's namespace is the window at that time.
        self.timer = MAX_WATERMARK
        self.timer_start = start
        self.timer_end = end
        #: Whether the row does not know the window yet.
        self.unsaved = False


class SessionWindowOperator(WindowOperator):
    """Sessions, evaluated when they end and with each late element."""

    shares_elements = False

    def __init__(
        self, node: OperatorNode, context: OperatorContext, operation: WindowOperation, selector: Selector
    ) -> None:
        super().__init__(node, context, operation, selector)
        assert isinstance(operation.assigner, _Sessions)
        self._assigner = operation.assigner
        #: key -> its sessions, by start
        self._sessions: dict[Any, list[Session]] = {}
        #: Sessions whose rows do not know their windows yet.
        self._unsaved: dict[Session, None] = {}

    def initialize_state(self, restored_id: int | None) -> None:
        super().initialize_state(restored_id)
        self._window_column = MergedWindowColumn(self.keyed)
        for key, (start, end), _, row in self._window_column.restored():
            self._sessions.setdefault(key, []).append(Session(key, start, end, row))
        for sessions in self._sessions.values():
            sessions.sort(key=lambda session: session.start)
        if self._sessions:
            self._adopt_timers()

    def _adopt_timers(self) -> None:
        """Of the restored timers, each session keeps its first: when it fires, what follows is known."""
        for time, key, namespace in list(self.timers.event.all()):
            session = self._session_at(key, namespace)
            if session is None or time >= session.timer:
                self.timers.delete_event_time(time, key, namespace)
                continue
            self._drop_timer(session)
            self._set_timer(session, time)

    def open(self) -> None:
        super().open()
        contents = self.contents
        self._add: Callable[[Row, Any], None]
        if isinstance(contents, AggregatedContents):
            self._add = self._adder(contents.function.add, swap=True)
        elif isinstance(contents, ReducedContents):
            self._add = self._adder(contents.reduce, swap=False)
        else:
            assert isinstance(contents, ElementContents)
            self._add = contents.append

    def _adder(self, combine: Callable[[Any, Any], Any], swap: bool) -> Callable[[Row, Any], None]:
        contents, keyed = self.contents, self.keyed
        assert isinstance(contents, AggregatedContents | ReducedContents)
        add_slowly, store, mark = contents.add, contents.store, keyed.mark

        def add(row: Row, record: Any) -> None:
            held = row[CONTENTS]
            if held is None:
                add_slowly(row, record, 0)
                return
            value = combine(record, held) if swap else combine(held, record)
            if value is None:
                store(row, None)
                return
            row[CONTENTS] = value
            if row[CONTENTS_MARK] is not keyed.generation:
                mark(row, CONTENTS_MARK)

        return add

    # -- elements -----------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        if timestamps is None:
            timestamps = [NO_TIMESTAMP] * len(records)
        selector, add, find = self.selector, self._add, self._sessions.get
        gap_of = None if isinstance(self._assigner, _FixedGap) else self._assigner.gap_of
        gap = self._assigner.gap_of(None) if gap_of is None else 0
        watermark, unsaved = self.current_watermark, self._unsaved
        remaining = iter(records)
        try:
            for record, start in zip(remaining, timestamps, strict=True):
                if gap_of is not None:
                    gap = gap_of(record)
                sessions = find(selector(record))
                if sessions is not None:
                    session = sessions[-1]
                    end = start + gap
                    if session.start <= start <= session.end and session.end > watermark + 1:
                        # The latest session goes on: by far the most frequent case.
                        if end > session.end:
                            session.end = end
                            if not session.unsaved:
                                session.unsaved = True
                                unsaved[session] = None
                        add(session.row, record)
                        continue
                self._add_anywhere(selector(record), start, start + gap, record)
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        self.results.flush()

    def _add_anywhere(self, key: Any, start: int, end: int, record: Any) -> None:
        """Add an element to a new session, or to the one that all sessions it meets become."""
        event_time_of(self._assigner, start)
        sessions = self._sessions.get(key)
        met = [each for each in sessions if each.start <= end and each.end >= start] if sessions else []
        if met:
            session = self._merged(key, met, start, end)
        elif self.cleanup_time(end - 1) <= self.current_watermark:
            if start + self.lateness <= self.current_watermark:
                self.drop_late(record, start)
            return
        else:
            session = self._opened(key, start, end)
        self._add(session.row, record)
        if session.end - 1 <= self.current_watermark:
            self._evaluate_session(session)
        self._time(session)

    def _opened(self, key: Any, start: int, end: int) -> Session:
        key = owned_key(key)
        session = Session(key, start, end, self.keyed.load_row((key, (start, end))))
        sessions = self._sessions.setdefault(key, [])
        sessions.append(session)
        if len(sessions) > 1:
            sessions.sort(key=lambda each: each.start)
        self._changed(session)
        return session

    def _merged(self, key: Any, met: list[Session], start: int, end: int) -> Session:
        """One session of several: the contents of the first take in those of the others."""
        session = met[0]
        start, end = min(start, session.start), max(end, met[-1].end)
        if (start, end) != (session.start, session.end):
            session.start, session.end = start, end
            self._changed(session)
        for other in met[1:]:
            self.contents.merge(session.row, other.row)
            self._forget(other)
        return session

    def _changed(self, session: Session) -> None:
        if not session.unsaved:
            session.unsaved = True
            self._unsaved[session] = None

    def _forget(self, session: Session) -> None:
        """The session is no more; its contents have been moved or cleared."""
        self._drop_timer(session)
        self._unsaved.pop(session, None)
        if session.row[self._window_column.place] is not None:
            self._window_column.set(session.row, None)
        sessions = self._sessions[session.key]
        sessions.remove(session)
        if not sessions:
            del self._sessions[session.key]

    # -- timers -------------------------------------------------------------------------------------------------------

    def _due(self, session: Session) -> int:
        """When something happens to a session next: it ends, or it goes."""
        end = session.end - 1
        return end if end > self.current_watermark else self.cleanup_time(end)

    def _time(self, session: Session) -> None:
        """Have a timer come in time: one that comes too early is set anew then."""
        due = self._due(session)
        if due < session.timer:
            self._drop_timer(session)
            self._set_timer(session, due)

    def _set_timer(self, session: Session, time: int) -> None:
        session.timer, session.timer_start, session.timer_end = time, session.start, session.end
        self.timers.register_event_time(time, session.key, (session.start, session.end))

    def _drop_timer(self, session: Session) -> None:
        if session.timer < MAX_WATERMARK:
            self.timers.delete_event_time(session.timer, session.key, (session.timer_start, session.timer_end))
            session.timer = MAX_WATERMARK

    def _session_at(self, key: Any, namespace: tuple[int, int]) -> Session | None:
        """The session that a window of the key has become."""
        for session in self._sessions.get(key, ()):
            if session.start <= namespace[0] <= session.end:
                return session
        return None

    def fire_event_time(self, watermark: int) -> Iterator[int]:
        for time, entries in self.timers.event.buckets_due(watermark):
            for key, namespace in entries:
                session = self._session_at(key, namespace)
                assert session is not None, f"a timer of key {key!r} without a session"
                session.timer = MAX_WATERMARK
                self._on_timer(session, time)
            yield time

    def _on_timer(self, session: Session, time: int) -> None:
        end = session.end - 1
        if time == end:
            self._evaluate_session(session)
        cleanup = self.cleanup_time(end)
        if time == cleanup:
            self._close(session)
            return
        due = end if time < end else cleanup
        if due < MAX_WATERMARK:
            self._set_timer(session, due)

    def fire_processing_time(self, now_ms: int) -> Iterator[int]:
        return iter(())

    def _evaluate_session(self, session: Session) -> None:
        contents, row = self.contents, session.row
        if self.function is None:
            results = self.results
            results.add(contents.evaluated(row)[0], session.end - 1)
            if len(results.values) >= OUTPUT_RECORDS:
                results.flush()
        else:
            namespace = session.start, session.end
            self.evaluate(session.key, namespace, TimeWindow(*namespace), contents.evaluated(row))

    def _close(self, session: Session) -> None:
        self.contents.clear(session.row)
        self._forget(session)
        if self._clear is not None:
            namespace = session.start, session.end
            self.clear_user_state(session.key, namespace, TimeWindow(*namespace))

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Write what has changed since the last snapshot: the windows, and the timers at their ends."""
        for session in self._unsaved:
            session.unsaved = False
            self._window_column.set(session.row, (session.start, session.end))
            self._drop_timer(session)
            due = self._due(session)
            if due < MAX_WATERMARK:
                self._set_timer(session, due)
        self._unsaved.clear()
        super().prepare_snapshot(checkpoint_id)
