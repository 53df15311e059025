"""The part of an operator's description that only operators of its kind have: typed, frozen, and sent to the slots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.state_descriptors import MapStateDescriptor
from rekindle.datastream.windowing.operation import NamespaceKind, WindowOperation

#: A sentence's part that names values which are stored or sent, and their type.
NamedType = tuple[str, TypeInformation | None]


@dataclass(frozen=True)
class OperatorDetails:
    """An operator that keeps no state of its own beside that of the user's function."""

    def state_layout(self) -> str:
        """Return the layout of the state that the operator keeps on its own, as checkpoints store it; empty: none.

        An operator cannot restore rows of another layout, even under the same uid.
        """
        return ""

    def stored_types(self, operator: str, output_type: TypeInformation | None) -> Iterator[NamedType]:
        """Yield the types of the values that the operator stores or sends to the driver."""
        yield from ()


#: The details of an operator without any.
PLAIN: Final = OperatorDetails()


@dataclass(frozen=True)
class ReduceDetails(OperatorDetails):
    """A rolling aggregation, which keeps its last result for each key."""

    def state_layout(self) -> str:
        """Return the layout of its own state."""
        return "a rolling aggregation"

    def stored_types(self, operator: str, output_type: TypeInformation | None) -> Iterator[NamedType]:
        """Yield the type of the results."""
        yield f"state of '{operator}'", output_type


@dataclass(frozen=True)
class CollectDetails(OperatorDetails):
    """The sink of `execute_and_collect`, which sends records to the driver, with or without their timestamps."""

    with_timestamps: bool = False

    def stored_types(self, operator: str, output_type: TypeInformation | None) -> Iterator[NamedType]:
        """Yield the type of the records."""
        yield f"records of '{operator}' to the driver", output_type


@dataclass(frozen=True)
class WindowDetails(OperatorDetails):
    """Windows: how they are written as namespaces of state, and the values in them."""

    namespaces: NamespaceKind
    layout: str
    contents_type: TypeInformation | None

    @staticmethod
    def of(operation: WindowOperation) -> WindowDetails:
        """The details of a window operation."""
        return WindowDetails(operation.namespaces, operation.layout, operation.stored_type())

    def state_layout(self) -> str:
        """Return the layout of its own state."""
        return self.layout

    def stored_types(self, operator: str, output_type: TypeInformation | None) -> Iterator[NamedType]:
        """Yield the type of one element or accumulator."""
        yield f"windows of '{operator}'", self.contents_type


@dataclass(frozen=True)
class AsyncWaitDetails(OperatorDetails):
    """Async I/O, which keeps the elements whose calls have not ended."""

    input_type: TypeInformation | None

    def state_layout(self) -> str:
        """Return the layout of its own state."""
        return "async I/O"

    def stored_types(self, operator: str, output_type: TypeInformation | None) -> Iterator[NamedType]:
        """Yield the type of the elements."""
        yield f"elements in flight in '{operator}'", self.input_type


@dataclass(frozen=True)
class IntervalJoinDetails(OperatorDetails):
    """An interval join: its bounds, and of the left and the right input the tag of late elements and the type."""

    bounds_ms: tuple[int, int]
    late_tags: tuple[OutputTag | None, OutputTag | None]
    types: tuple[TypeInformation | None, TypeInformation | None]

    def state_layout(self) -> str:
        """Return the layout of its own state."""
        return "an interval join"

    def stored_types(self, operator: str, output_type: TypeInformation | None) -> Iterator[NamedType]:
        """Yield the types of the buffered elements."""
        for side, type_info in zip(("left", "right"), self.types, strict=True):
            yield f"{side} elements buffered in '{operator}'", type_info


@dataclass(frozen=True)
class BroadcastDetails(OperatorDetails):
    """An operator with a broadcast input, and the states that the program declared for it."""

    descriptors: tuple[MapStateDescriptor, ...]

    def stored_types(self, operator: str, output_type: TypeInformation | None) -> Iterator[NamedType]:
        """Yield the types of keys and values, but for those with a serializer of the user's."""
        for each in self.descriptors:
            state = f"broadcast state '{each.name}' of '{operator}'"
            if each.get_key_serializer() is None:
                yield state, each.key_type_info
            if each.get_serializer() is None:
                yield state, each.value_type_info


@dataclass(frozen=True)
class DataFrameDetails(OperatorDetails):
    """A DataFrame source: the environment's handle of the DataFrame, and how many partitions it has."""

    handle: str
    partitions: int = 0  # until the job is launched
