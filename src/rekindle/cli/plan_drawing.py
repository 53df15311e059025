"""Draws a plan in the terminal: tasks as knots, exchanges as lines between them, as `git log --graph` draws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from rekindle.graph.nodes import Chain, JobPlan, OperatorNode

_KNOT, _LINE, _SPACE = "●", "│", " "


@dataclass(frozen=True)
class Knot:
    """A task of the drawing."""

    name: str
    #: More of its title, and lines about it.
    about: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class DrawnExchange:
    """A line of the drawing, from one knot to a later one."""

    source: int
    target: int
    label: str


def drawn(knots: Sequence[Knot], exchanges: Sequence[DrawnExchange]) -> Iterator[tuple[str, str, bool]]:
    """The rows of the drawing: its lines, a text, and whether that is a title. Every exchange goes downwards.

    >>> exchanges = [DrawnExchange(0, 2, "HASH"), DrawnExchange(1, 2, "HASH")]
    >>> for lines, text, _ in drawn([Knot("a"), Knot("b"), Knot("c")], exchanges):
    ...     print(f"{lines} {text}".rstrip())
    ● a
    │ ● b
    │ │ HASH from a
    │ │ HASH from b
    ├─╯
    ● c
    """
    lanes: list[DrawnExchange | None] = []
    for number, knot in enumerate(knots):
        arriving = [lane for lane, each in enumerate(lanes) if each is not None and each.target == number]
        for lane in arriving:
            each = lanes[lane]
            assert each is not None
            yield _row(lanes), each.label + (f" from {knots[each.source].name}" if len(arriving) > 1 else ""), False
        own = arriving[0] if arriving else _free(lanes, 0)
        if len(arriving) > 1:
            yield _joint(lanes, own, arriving[1:], "┴", "╯"), "", False
        for lane in arriving:
            lanes[lane] = None
        _trim(lanes, own + 1)
        leaving = [each for each in exchanges if each.source == number]
        yield _row(lanes, own), knot.name + knot.about, True
        lanes[own] = leaving[0] if leaving else None
        for detail in knot.details:
            yield _row(lanes, width=own + 1), f"  {detail}", False
        added = _opened(lanes, own, leaving[1:])
        if added:
            yield _joint(lanes, own, added, "┬", "╮"), "", False
        _trim(lanes)


def _trim(lanes: list[DrawnExchange | None], least: int = 0) -> None:
    """Forget lanes at the right that no exchange uses."""
    while len(lanes) > least and lanes[-1] is None:
        lanes.pop()


def _free(lanes: list[DrawnExchange | None], after: int) -> int:
    """A lane that no exchange uses, a new one if need be."""
    for lane in range(after, len(lanes)):
        if lanes[lane] is None:
            return lane
    lanes.append(None)
    return len(lanes) - 1


def _opened(lanes: list[DrawnExchange | None], own: int, leaving: Iterable[DrawnExchange]) -> list[int]:
    added = []
    for each in leaving:
        lane = _free(lanes, own + 1)
        lanes[lane] = each
        added.append(lane)
    return added


def _row(lanes: Sequence[DrawnExchange | None], own: int | None = None, width: int = 0) -> str:
    cells = [_LINE if each is not None else _SPACE for each in lanes]
    if own is not None:
        cells[own] = _KNOT
    return " ".join([*cells, *[_SPACE] * (width - len(cells))])


def _joint(lanes: Sequence[DrawnExchange | None], own: int, others: Sequence[int], middle: str, last: str) -> str:
    """The row in which lines join, or part: from the own lane to the last of the others."""
    cells = []
    for lane, each in enumerate(lanes):
        if lane == own:
            cells.append("├")
        elif lane in others:
            cells.append(last if lane == others[-1] else middle)
        elif own < lane < others[-1]:
            cells.append("┼" if each is not None else "─")
        else:
            cells.append(_LINE if each is not None else _SPACE)
    fills = ["─" if own <= lane < others[-1] else " " for lane in range(len(cells))]
    return "".join(cell + fill for cell, fill in zip(cells, fills, strict=True))[:-1]


def plan_drawing(plan: JobPlan) -> Text:
    """A plan as text with colours."""
    from rich.text import Text

    mode = "BATCH" if plan.batch else "STREAMING"
    counts = f"{len(plan.chains)} tasks, {plan.stages} stages, {plan.slots} slots"
    drawing = Text.assemble((f"Job '{plan.job_name}'", "bold"), f": {mode}, {counts}\n")
    order = sorted(plan.chains, key=lambda chain: (chain.stage, chain.id))
    numbers = {chain.id: number for number, chain in enumerate(order)}
    knots = [_knot(plan, chain) for chain in order]
    exchanges = [
        DrawnExchange(numbers[plan.chain_of(edge.source).id], numbers[plan.chain_of(edge.target).id], _label(edge))
        for edge in plan.edges
        if not plan.chained(edge)
    ]
    for lines, text, is_title in drawn(knots, exchanges):
        drawing.append(f"\n{lines} " if text else f"\n{lines}", "cyan").append(text, "bold" if is_title else "dim")
    return drawing


def _label(edge: object) -> str:
    from rekindle.graph.nodes import StreamEdge

    assert isinstance(edge, StreamEdge)
    side = "" if edge.tag is None else f" of side output '{edge.tag}'"
    return f"{edge.partitioning.value}{side}"


def _knot(plan: JobPlan, chain: Chain) -> Knot:
    slots = sorted({plan.placement[chain.id, subtask] for subtask in range(chain.parallelism)})
    where = f"slot {slots[0]}" if len(slots) == 1 else f"slots {slots[0]} to {slots[-1]}"
    return Knot(
        chain.name, f"  ×{chain.parallelism}, {where}", tuple(_operator(plan.nodes[node]) for node in chain.nodes)
    )


def _operator(node: OperatorNode) -> str:
    keyed = "" if not node.is_keyed else ", keyed" if node.key_type is None else f", keyed by {node.key_type}"
    uid = "" if node.user_uid is None else f", uid '{node.user_uid}'"
    output = "" if node.kind.is_sink else f" → {'pickled' if node.output_type is None else node.output_type}"
    return f"{node.name}{keyed}{uid}{output}"
