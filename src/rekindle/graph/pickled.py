"""Finds the streams, results and state that a job pickles because no type was declared (I20)."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.state_descriptors import MapStateDescriptor
from rekindle.datastream.windowing.operation import WindowOperation
from rekindle.errors import GraphError
from rekindle.graph.nodes import Chain, OperatorKind, OperatorNode, StreamEdge

_UNDECLARED = "no type was declared"


def pickle_reason(type_info: TypeInformation | None) -> str | None:
    """Why values of a type are pickled; None when they are not.

    >>> pickle_reason(None)
    'no type was declared'
    """
    return _UNDECLARED if type_info is None else type_info.pickle_reason()


def pickled_parts(nodes: Sequence[OperatorNode], edges: Sequence[StreamEdge], chains: Sequence[Chain]) -> list[str]:
    """A sentence for each stream between tasks, each result and each known state that is pickled."""
    chain_of = {node: chain.id for chain in chains for node in chain.nodes}
    parts = []
    for edge in edges:
        reason = pickle_reason(edge.type_info)
        if chain_of[edge.source] != chain_of[edge.target] and reason is not None:
            parts.append(f"records from {_output(nodes, edge)} to '{nodes[edge.target].name}' ({reason})")
    for node in nodes:
        reason = pickle_reason(node.output_type)
        if node.kind is OperatorKind.COLLECT and reason is not None:
            parts.append(f"records of '{node.name}' to the driver ({reason})")
        if node.kind is OperatorKind.REDUCE and reason is not None:
            parts.append(f"state of '{node.name}' ({reason})")
        if isinstance(node.function, WindowOperation):
            contents_reason = pickle_reason(node.function.stored_type())
            if contents_reason is not None:
                parts.append(f"windows of '{node.name}' ({contents_reason})")
        if node.kind is OperatorKind.ASYNC_WAIT and pickle_reason(node.options["input_type"]) is not None:
            parts.append(f"elements in flight in '{node.name}' ({pickle_reason(node.options['input_type'])})")
        for side, input_type in zip(("left", "right"), node.options.get("join_types", ()), strict=False):
            if pickle_reason(input_type) is not None:
                parts.append(f"{side} elements buffered in '{node.name}' ({pickle_reason(input_type)})")
        for descriptor in node.options.get("broadcast_descriptors", ()):
            state_reason = _broadcast_reason(descriptor)
            if state_reason is not None:
                parts.append(f"broadcast state '{descriptor.name}' of '{node.name}' ({state_reason})")
    return parts


def _broadcast_reason(descriptor: MapStateDescriptor) -> str | None:
    """The reason why keys or values of a broadcast state are pickled; a user's serializer pickles nothing."""
    keys = None if descriptor.get_key_serializer() is not None else pickle_reason(descriptor.key_type_info)
    return keys or (None if descriptor.get_serializer() is not None else pickle_reason(descriptor.value_type_info))


def refuse_pickled(parts: Sequence[str]) -> None:
    """Refuse a job that would pickle, under `state.pickle: refuse`."""
    if parts:
        raise GraphError(
            f"state.pickle is 'refuse', but the job would pickle {'; '.join(parts)}: declare their types "
            "(output_type=, type_info=), or set state.pickle to 'allow'."
        )


def _output(nodes: Sequence[OperatorNode], edge: StreamEdge) -> str:
    name = f"'{nodes[edge.source].name}'"
    return name if edge.tag is None else f"side output '{edge.tag}' of {name}"
