"""Interval join: each side keeps its elements until the other side's watermark shows that no partner can come.

Elements are buffered in buckets of time, so that an element is compared with its possible partners only. Elements are
removed, and are late, exactly as in Flink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.common.watermark_strategy import MAX_WATERMARK, NO_TIMESTAMP
from rekindle.datastream.functions import ProcessJoinFunction
from rekindle.datastream.operator_details import IntervalJoinDetails
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.state import ListStateDescriptor, MapState, MapStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.list_keys import hashable_key
from rekindle.runtime.operators.keyed import KeyedOperator, Selector
from rekindle.runtime.operators.output import Stamp, failed_record
from rekindle.runtime.operators.roles import TwoInputs
from rekindle.runtime.state.described_states import keyed_state

#: About how many buckets cover an interval: fewer make longer lists, more make more lookups.
_BUCKETS_PER_INTERVAL = 8
_LEFT, _RIGHT = "left", "right"
#: The operator state with the bounds for which the buffers were made: buckets and timers depend on the bounds.
_BOUNDS = "bounds"

Entry = tuple[int, Any]  # (timestamp, record)


class _JoinContext(ProcessJoinFunction.Context):
    """The context of a join function; one object per operator."""

    left = right = NO_TIMESTAMP

    def get_left_timestamp(self) -> int:
        return self.left

    def get_right_timestamp(self) -> int:
        return self.right

    def get_timestamp(self) -> int:
        return max(self.left, self.right)


@dataclass
class _Side:
    """One input: the interval in which its elements have partners, and the buffer of its own elements."""

    name: str
    selector: Selector
    earliest: int  # partners are from this time, relative to an element
    latest: int  # to this time
    late: OutputTag | None
    type_info: TypeInformation | None
    buffer: MapState[Any, Any] = None  # type: ignore[assignment]  # in open()

    def __post_init__(self) -> None:
        #: An element is removed when the watermark is later than it by this much.
        self.reach = max(0, self.latest)
        # Without reach an element is kept until the next watermark: buckets of 1 ms are removed exactly then.
        self.bucket = max(1, (self.latest - self.earliest + 1) // _BUCKETS_PER_INTERVAL) if self.reach else 1

    def descriptor(self) -> MapStateDescriptor:
        """Return the descriptor of the buffer: bucket -> its elements."""
        declared = self.type_info
        entries = None if declared is None else Types.LIST(Types.TUPLE([Types.LONG(), declared]))
        return reserved(MapStateDescriptor(f"{self.name}-buffer", Types.LONG(), entries))

    def candidates(self, earliest: int, latest: int, watermark: int) -> list[Entry]:
        """Return the elements of this side in an interval, by time, without those out of reach at `watermark`."""
        first, last = earliest // self.bucket, latest // self.bucket
        held = list(self.buffer.keys())
        if not held:
            return []
        buckets: Any = range(first, last + 1)
        if len(held) <= last - first:
            buckets = sorted(each for each in held if first <= each <= last)
        earliest = max(earliest, watermark - self.reach + 1) if self.reach else earliest
        get = self.buffer.get
        return [entry for each in buckets for entry in get(each) or () if earliest <= entry[0] <= latest]


class IntervalJoinOperator(KeyedOperator, TwoInputs):
    """Runs `interval_join`: the first input is the left stream."""

    def __init__(self, node: OperatorNode, context: OperatorContext, function: Any, selectors: list[Selector]) -> None:
        super().__init__(node, context, function, selectors)
        details = node.described_as(IntervalJoinDetails)
        lower, upper = self._bounds = details.bounds_ms
        self._bounds_changed = False
        bounds = ((lower, upper), (-upper, -lower))
        self._sides = [
            _Side(name, selector, *interval, late, type_info)
            for name, selector, interval, late, type_info in zip(
                (_LEFT, _RIGHT), selectors, bounds, details.late_tags, details.types, strict=True
            )
        ]

    def make_context(self) -> _JoinContext:
        return _JoinContext()

    def initialize_state(self, restored_id: int | None) -> None:
        super().initialize_state(restored_id)
        saved = self.context.operator_state.get_union_list_state(reserved(ListStateDescriptor(_BOUNDS, None)))
        own = tuple(self._bounds)
        self._bounds_changed = restored_id is not None and set(saved.get()) != {own}
        saved.update([own])

    def open(self) -> None:
        for side in self._sides:
            side.buffer = keyed_state(self.keyed, side.descriptor())
        if self._bounds_changed:
            self._move_to_current_bounds()
        self._dropped = self.context.metrics.counter("numLateRecordsDropped")
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        left, right = self._sides
        self._join(left, right, self._pair_of_left, records, timestamps)

    def process_batch2(self, records: list[Any], timestamps: list[int] | None) -> None:
        left, right = self._sides
        self._join(right, left, self._pair_of_right, records, timestamps)

    def _pair_of_left(self, own: Entry, other: Entry) -> Any:
        context = self.user_context
        context.left, context.right = own[0], other[0]
        return self.function.process_element(own[1], other[1], context)

    def _pair_of_right(self, own: Entry, other: Entry) -> Any:
        context = self.user_context
        context.left, context.right = other[0], own[0]
        return self.function.process_element(other[1], own[1], context)

    def _join(
        self,
        own: _Side,
        other: _Side,
        pair: Callable[[Entry, Entry], Any],
        records: list[Any],
        timestamps: list[int] | None,
    ) -> None:
        self.collector.drain(
            lambda stamp: self._join_results(own, other, pair, (records, timestamps), stamp), stamped=True
        )

    def _join_results(
        self,
        own: _Side,
        other: _Side,
        pair: Callable[[Entry, Entry], Any],
        batch: tuple[list[Any], list[int] | None],
        stamp: Stamp,
    ) -> Iterator[Any]:
        records, timestamps = batch
        keyed, watermark = self.keyed, self.current_watermark
        find, load, selector = keyed.front.get, keyed.load_row, own.selector
        remaining = iter(records)
        try:
            for index, record in enumerate(remaining):
                timestamp = _timestamp(timestamps, index)
                if timestamp < watermark:
                    if own.late is None:
                        self._dropped.inc()
                    else:
                        stamp(timestamp)
                        yield own.late, record
                    continue
                key = selector(record)
                try:
                    keyed.row = find(key) or load(key)
                except TypeError:
                    keyed.set_current_key(hashable_key(key))
                entry = timestamp, record
                self._keep(own, entry)
                for partner in other.candidates(timestamp + own.earliest, timestamp + own.latest, watermark):
                    results = pair(entry, partner)
                    if results is not None:
                        time = max(timestamp, partner[0])
                        for out in results:
                            stamp(time)
                            yield out
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error

    def _keep(self, side: _Side, entry: Entry) -> None:
        bucket = entry[0] // side.bucket
        held = side.buffer.get(bucket)
        if held is None:
            end = (bucket + 1) * side.bucket - 1
            self.timers.register_event_time(end + side.reach, self.keyed.current_key(), side.name)
            held = []
        held.append(entry)
        side.buffer.put(bucket, held)

    def _move_to_current_bounds(self) -> None:
        """Move elements that were saved with other bounds to the buckets and timers of the current bounds."""
        self.timers.event.drop_due(MAX_WATERMARK)
        for side in self._sides:
            for key in list(self.keyed.keys_with(side.descriptor().name)):
                self.keyed.set_current_key(key)
                entries = [entry for held in side.buffer.values() for entry in held]
                side.buffer.clear()
                for entry in entries:
                    if entry[0] + side.reach >= self.current_watermark:
                        self._keep(side, entry)
        self.keyed.clear_current_key()

    def process_watermark(self, watermark: int) -> None:
        """Remove the elements that can have no partner any more."""
        self.current_watermark = watermark
        left, right = self._sides
        for time, key, name in self.timers.advance_watermark(watermark):
            side = left if name == _LEFT else right
            self.keyed.set_current_key(key)
            side.buffer.remove((time - side.reach) // side.bucket)
        self.keyed.clear_current_key()
        self.output.emit_watermark(watermark)


def _timestamp(timestamps: list[int] | None, index: int) -> int:
    timestamp = NO_TIMESTAMP if timestamps is None else timestamps[index]
    if timestamp == NO_TIMESTAMP:
        raise ValueError(
            "an interval join is in event time, but this element has no timestamp: call "
            "assign_timestamps_and_watermarks() before key_by()"
        )
    return timestamp
