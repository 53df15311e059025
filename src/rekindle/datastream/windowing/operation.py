"""A window operator as data: the API builds it, the engine runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.functions.simple import AggregateFunction, ReduceFunction
from rekindle.datastream.functions.window_function import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.windowing.assigners import MergingWindowAssigner, WindowAssigner
from rekindle.datastream.windowing.evictors import Evictor
from rekindle.datastream.windowing.triggers import Trigger
from rekindle.datastream.windowing.windows import CountWindowSerializer, GlobalWindowSerializer, TimeWindowSerializer

#: Functions that evaluate a window. Without one, the contents are the result.
EvaluatingFunction = WindowFunction[Any, Any, Any, Any] | ProcessWindowFunction[Any, Any, Any, Any]
EvaluatingAllFunction = AllWindowFunction[Any, Any, Any] | ProcessAllWindowFunction[Any, Any, Any]


class NamespaceKind(StrEnum):
    """The form in which windows are written as namespaces of state."""

    TIME = "time"
    COUNT = "count"
    GLOBAL = "global"
    CUSTOM = "custom"


_SERIALIZERS: Final = {
    TimeWindowSerializer: NamespaceKind.TIME,
    CountWindowSerializer: NamespaceKind.COUNT,
    GlobalWindowSerializer: NamespaceKind.GLOBAL,
}


class ContentsKind(StrEnum):
    """The form in which state holds a window's elements."""

    ELEMENTS = "elements"
    REDUCED = "reduced"
    AGGREGATED = "aggregated"


_CONTENTS: Final = {
    ContentsKind.ELEMENTS: "elements",
    ContentsKind.REDUCED: "reduced values",
    ContentsKind.AGGREGATED: "accumulators",
}


@dataclass(frozen=True)
class WindowContents:
    """How elements become a window's contents. `type_info` is the type of one element or of the accumulator."""

    kind: ContentsKind
    function: ReduceFunction | AggregateFunction | Callable[[Any, Any], Any] | None
    type_info: TypeInformation | None


@dataclass(frozen=True)
class WindowOperation:
    """All settings of one window operator."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: WindowContents
    function: EvaluatingFunction | EvaluatingAllFunction | None = None
    evictor: Evictor[Any, Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag: OutputTag | None = None
    input_type: TypeInformation | None = None

    @property
    def merging(self) -> bool:
        """Whether the assigner may merge windows."""
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def namespaces(self) -> NamespaceKind:
        """The form in which the assigner's windows are written."""
        return _SERIALIZERS.get(type(self.assigner.get_window_serializer()), NamespaceKind.CUSTOM)

    def stored_type(self) -> TypeInformation | None:
        """Return the type of the values in state. With an evictor, state always holds the elements themselves."""
        return self.input_type if self.evictor is not None else self.contents.type_info

    @property
    def layout(self) -> str:
        """A description of the values in state, stored in checkpoints. Another layout cannot be restored."""
        domain = "event-time" if self.assigner.is_event_time() else "processing-time"
        windows = {
            NamespaceKind.TIME: f"{domain} windows",
            NamespaceKind.COUNT: "count windows",
            NamespaceKind.GLOBAL: "global windows",
            NamespaceKind.CUSTOM: f"custom {domain} windows",
        }[self.namespaces]
        contents = "timestamped elements" if self.evictor is not None else _CONTENTS[self.contents.kind]
        return f"{'merging ' if self.merging else ''}{windows} of {contents}"

    def describe(self, stream: str) -> str:
        """Return the description for the plan, in PyFlink's form."""
        functions = [each for each in (self.contents.function, self.function) if each is not None]
        names = [getattr(each, "__name__", type(each).__name__) for each in functions]
        evictor = [] if self.evictor is None else [str(self.evictor)]
        return f"{stream}({', '.join([str(self.assigner), str(self.trigger), *evictor, *names])})"
