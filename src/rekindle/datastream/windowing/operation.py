"""A window operator as data: what the API says and the engine runs."""

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

#: The node's option that says what windows are to state: a `NamespaceKind`.
NAMESPACES_OPTION: Final = "namespaces"
#: The node's option that says, in words, what lies in state: see `WindowOperation.layout`.
LAYOUT_OPTION: Final = "layout"

#: What evaluates a window; None: the contents are the result.
EvaluatingFunction = WindowFunction[Any, Any, Any, Any] | ProcessWindowFunction[Any, Any, Any, Any]
EvaluatingAllFunction = AllWindowFunction[Any, Any, Any] | ProcessAllWindowFunction[Any, Any, Any]


class NamespaceKind(StrEnum):
    """What windows are written as."""

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
    """What is kept of a window's elements."""

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
    """How elements become a window's contents. `type_info` is that of one element, or of the accumulator."""

    kind: ContentsKind
    function: ReduceFunction | AggregateFunction | Callable[[Any, Any], Any] | None
    type_info: TypeInformation | None


@dataclass(frozen=True)
class WindowOperation:
    """Everything about one window operator."""

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
        """Whether windows may grow together."""
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def namespaces(self) -> NamespaceKind:
        """What the assigner's windows are written as."""
        return _SERIALIZERS.get(type(self.assigner.get_window_serializer()), NamespaceKind.CUSTOM)

    def stored_type(self) -> TypeInformation | None:
        """The type of what lies in state: with an evictor the elements do, whatever is made of them."""
        return self.input_type if self.evictor is not None else self.contents.type_info

    @property
    def layout(self) -> str:
        """What lies in state, in words that are part of a checkpoint: other words cannot read it."""
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
        """The operator for people, as PyFlink writes it."""
        functions = [each for each in (self.contents.function, self.function) if each is not None]
        names = [getattr(each, "__name__", type(each).__name__) for each in functions]
        evictor = [] if self.evictor is None else [str(self.evictor)]
        return f"{stream}({', '.join([str(self.assigner), str(self.trigger), *evictor, *names])})"
