"""The screen of `rekindle watch`: a function of the document `/jobs/:jobid/live`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rekindle.cli.cells_for_people import duration, moment, rate, share, size, sparkline

if TYPE_CHECKING:
    from rich.console import RenderableType

Live = dict[str, Any]
_COLOURS = {
    "RUNNING": "green",
    "FINISHED": "green",
    "COMPLETED": "green",
    "RESTARTING": "yellow",
    "IN_PROGRESS": "yellow",
    "FAILING": "red",
    "FAILED": "red",
}
#: Above these shares of its time a task is shown in colour.
_BUSY, _WAITING = 0.8, 0.5
_LAST_CHECKPOINTS = 6
_BESIDE_A_CHART = 30


def screen(live: Live, address: str, width: int) -> RenderableType:
    """The whole screen."""
    return Group(
        _heading(live, address), _throughput(live, width), _tasks(live), _checkpoints(live, width), _slots(live)
    )


def coloured(state: str) -> Text:
    """A state in its colour."""
    return Text(state, _COLOURS.get(state, ""))


def _heading(live: Live, address: str) -> RenderableType:
    restarts = f"{live['restarts']} restarts, {live['failures']} failures"
    first = Text.assemble((live["name"], "bold"), "  ", coloured(live["state"]), f"  for {duration(live['duration'])}")
    second = Text(f"{live['jid']} at {address}, attempt {live['attempt']}, {restarts}", "dim")
    return Panel(Group(first, second), border_style=_COLOURS.get(live["state"], ""), padding=(0, 1))


def _throughput(live: Live, width: int) -> RenderableType:
    """Records per second of the last epochs, in at the sources and out at the sinks."""
    most = max(10, width - _BESIDE_A_CHART)
    grid = Table.grid(padding=(0, 1))
    for name, key in (("in", "records-in"), ("out", "records-out")):
        rates = _rates(live["epochs"], key)
        last = rate(rates[-1] if rates else 0.0)
        grid.add_row(Text(f"{name:>3}", "bold"), Text(f"{last:>12}/s"), Text(sparkline(rates, most), "cyan"))
    return _titled("Throughput", grid)


def _rates(epochs: list[Live], key: str) -> list[float]:
    """Records per second between the ends of epochs."""
    rates = []
    for before, epoch in pairwise(epochs):
        passed_ms = max(1, epoch["end-time"] - before["end-time"])
        rates.append(epoch[key] * 1000 / passed_ms)
    return rates


def _tasks(live: Live) -> RenderableType:
    right = ("×", "In/s", "Out/s", "Waiting", "Watermark lag", "State")
    columns = ("Task", "×", "State of tasks", "In/s", "Out/s", "Busy", "Back-pressured", "Watermark lag", "State")
    rows = _table(columns, right)
    for vertex in live["vertices"]:
        busy, held = vertex["busy"], vertex["back-pressured"]
        rows.add_row(
            Text(vertex["name"], overflow="ellipsis", no_wrap=True),
            str(vertex["parallelism"]),
            coloured(vertex["status"]),
            rate(vertex["records-in-per-second"]),
            rate(vertex["records-out-per-second"]),
            Text(share(busy), "red" if busy > _BUSY else ""),
            Text(share(held), "yellow" if held > _WAITING else ""),
            duration(vertex["watermark-lag"]),
            size(vertex["state-size"]),
        )
    return _titled("Tasks", rows)


def _checkpoints(live: Live, width: int) -> RenderableType:
    known = live["checkpoints"]
    trend = known["trend"]
    age = live["checkpoint-age"]
    counts = f"{known['completed']} completed, {known['failed']} failed, {known['in-progress']} in progress"
    good = "none yet that a restart could begin from" if age is None else f"the last good one is {duration(age)} old"
    summary = Text(f"{counts}; {good}", "red" if known["failed"] and age is None else "")
    chart = Text.assemble(
        ("duration ", "bold"),
        (sparkline([each["duration"] for each in trend], max(10, width - _BESIDE_A_CHART)), "cyan"),
    )
    rows = _table(
        ("ID", "Kind", "Status", "Triggered", "Duration", "Written", "State"), ("ID", "Duration", "Written", "State")
    )
    for each in reversed(trend[-_LAST_CHECKPOINTS:]):
        kind = "savepoint" if each["is-savepoint"] else "checkpoint"
        sizes = size(each["checkpointed-size"]), size(each["state-size"])
        times = moment(each["trigger-time"]), duration(each["duration"])
        rows.add_row(str(each["id"]), kind, coloured(each["status"]), *times, *sizes)
    return _titled("Checkpoints", Group(summary, chart, rows) if trend else summary)


def _slots(live: Live) -> RenderableType:
    rows = _table(
        ("Slot", "Host", "Process", "Memory", "Processor time", "State", "Subtasks"),
        ("Slot", "Process", "Memory", "State"),
    )
    for slot in live["slots"]:
        running = sum(each["status"] == "RUNNING" for each in slot["subtasks"])
        cpu = duration(slot["cpu-seconds"] * 1000)
        tasks = f"{running} of {len(slot['subtasks'])} running"
        sizes = size(slot["memory"]), cpu, size(slot["state-size"])
        rows.add_row(str(slot["index"]), slot["host"], str(slot["pid"]), *sizes, tasks)
    return _titled("Slots", rows if live["slots"] else Text("none yet", "dim"))


def _titled(title: str, content: RenderableType) -> RenderableType:
    return Group(Text(title, "bold underline"), content, Text(""))


def _table(columns: tuple[str, ...], right: tuple[str, ...]) -> Table:
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    return made
