"""Merged windows of a key, and where their contents lie.

The contents of merged windows stay in the row of one of them: its namespace is the *state namespace* of the merged
window. A column of that row names the merged window. An index by key lies where the state lies, in memory or on disk;
a restore builds it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.datastream.windowing.assigners import MergingWindowAssigner
from rekindle.runtime.operators.windows.namespaces import Namespace
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import ROW_KEY, Row
from rekindle.runtime.state.row_columns import ValueColumn
from rekindle.runtime.state.spec import value_spec

if TYPE_CHECKING:
    from rekindle.runtime.operators.windows.general_windows import GeneralWindowOperator

#: (key, merged window, its namespace, the windows that were merged into it)
OnMerge = Callable[[Any, Any, Namespace, list[tuple[Namespace, Any]]], None]

_STATE_NAME: Final = "merged-window"


class MergedWindowColumn(ValueColumn):
    """The column that names the window to which a row's contents belong."""

    def __init__(self, keyed: KeyedStateBackend) -> None:
        super().__init__(keyed, value_spec(reserved(ValueStateDescriptor(_STATE_NAME, None)), allow_pickle=False))

    def restored(self) -> Iterable[tuple[Any, Namespace, Namespace, Row]]:
        """Yield (key, window, state namespace, row) of every window."""
        for group in self._backend.key_groups:
            for row in self._backend.rows_of(group):
                if (namespace := self.get(row)) is not None:
                    key, state = row[ROW_KEY]
                    yield key, namespace, state, row


@dataclass(frozen=True)
class AddedWindow:
    """The window that takes an element, merged or not, and the namespace of its contents."""

    window: Any
    namespace: Namespace
    state: Namespace


class _Merges(MergingWindowAssigner.MergeCallback[Any]):
    def __init__(self) -> None:
        self.found: list[tuple[Any, list[Any]]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append((merge_result, list(to_be_merged)))


class MergingWindows:
    """The windows of all keys, for the general operator."""

    def __init__(self, operator: GeneralWindowOperator) -> None:
        assert isinstance(operator.operation.assigner, MergingWindowAssigner)
        self._operator = operator
        self._assigner: MergingWindowAssigner[Any, Any] = operator.operation.assigner
        self._pack, self._unpack = operator.namespaces.pack, operator.namespaces.unpack
        self._column = MergedWindowColumn(operator.keyed)
        self._index = operator.keyed.new_index()
        for key, namespace, state, _ in self._column.restored():
            self._index.put(key, self._windows_of(key) | {namespace: state})

    def _windows_of(self, key: Any) -> dict[Namespace, Namespace]:
        """The windows of a key, with their state namespaces."""
        return self._index.get(key) or {}

    def state_of(self, key: Any, namespace: Namespace) -> Namespace | None:
        """Return the state namespace of a window; None if there is no such window."""
        return self._windows_of(key).get(namespace)

    def add(self, key: Any, window: Any, on_merge: OnMerge) -> AddedWindow:
        """Merge a window with the windows of the key that it meets; return the resulting window."""
        windows = self._windows_of(key)
        merges = _Merges()
        self._assigner.merge_windows([*map(self._unpack, windows), window], merges)
        added = self._pack(window)
        result = AddedWindow(window, added, windows.get(added, added))
        for merged_window, members in merges.found:
            old = [(self._pack(member), member) for member in members]
            known = [(namespace, member) for namespace, member in old if namespace in windows]
            merged = self._pack(merged_window)
            state = self._merge(key, windows, merged_window, merged, known, on_merge) if known else merged
            if any(namespace == added for namespace, _ in old):
                result = AddedWindow(merged_window, merged, state)
        return result

    def _merge(
        self,
        key: Any,
        windows: dict[Namespace, Namespace],
        window: Any,
        namespace: Namespace,
        known: list[tuple[Namespace, Any]],
        on_merge: OnMerge,
    ) -> Namespace:
        states = [windows[old] for old, _ in known]
        if [old for old, _ in known] == [namespace]:
            return states[0]  # the element lies inside an existing window: nothing changes
        self._check_end(window)
        on_merge(key, window, namespace, known)
        for old, _ in known:
            del windows[old]
        windows[namespace] = states[0]
        self._index.put(key, windows)
        operator, contents = self._operator, self._operator.contents
        for state in states[1:]:
            source = operator.row_of(key, state)
            if contents.present(source):
                # Not kept from one window to the next: a backend on disk drops rows that were not asked for lately.
                contents.merge(operator.row_of(key, states[0]), contents.raw(source))
                contents.clear(source)
            self._column.remove(source)
        self._column.set(operator.row_of(key, states[0]), namespace)
        return states[0]

    def _check_end(self, window: Any) -> None:
        operator = self._operator
        end = window.max_timestamp()
        if operator.event_time:
            passed = operator.cleanup_time(end) <= operator.current_watermark
        else:
            passed = end <= operator.context.clock.wall_ms()
        if passed:
            raise ValueError(
                f"{self._assigner} merged windows into {window!r}, which has passed already: a merged window must not "
                "end before the windows that it is made of"
            )

    def persist(self, key: Any, added: AddedWindow) -> None:
        """Register a window that has got its first element."""
        windows = self._windows_of(key)
        if added.namespace not in windows:
            windows[added.namespace] = added.state
            self._index.put(key, windows)
            self._column.set(self._operator.row_of(key, added.state), added.namespace)

    def retire(self, key: Any, namespace: Namespace) -> None:
        """Remove a window."""
        windows = self._windows_of(key)
        self._column.remove(self._operator.row_of(key, windows.pop(namespace)))
        self._index.put(key, windows or None)
