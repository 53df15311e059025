"""The screen of `rekindle watch`: a function of the document `/jobs/:jobid/live`, and of the room in the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rekindle.cli.cells_for_people import duration, moment, rate, share, size, sparkline

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod, RenderableType

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
_BESIDE_A_CHART = 30
#: The most epochs and checkpoints of a chart.
_KEPT = 300
#: Below this width columns have short names, and shares no bars.
_WIDE = 120


@dataclass(frozen=True)
class Room:
    """The room for a screen: columns, the number of last checkpoints, and whether each slot has a line."""

    width: int
    checkpoints: int = 6
    slots: bool = True

    @property
    def is_wide(self) -> bool:
        """Whether there is room for bars and whole words."""
        return self.width >= _WIDE


def screen(live: Live, address: str, room: Room) -> RenderableType:
    """The whole screen."""
    parts = _heading(live, address), _trouble(live), _throughput(live, room.width), _tasks(live, room)
    return Group(*parts, _checkpoints(live, room), _slots(live, room))


def merged(known: Live | None, news: Live) -> Live:
    """The document with the epochs and checkpoints that are known from before: an event has the last ones only."""
    if known is None:
        return news
    first_ms = min((each["end-time"] for each in news["epochs"]), default=0)
    epochs = [each for each in known["epochs"] if each["end-time"] < first_ms] + news["epochs"]
    new = {each["id"] for each in news["checkpoints"]["trend"]}
    trend = [each for each in known["checkpoints"]["trend"] if each["id"] not in new] + news["checkpoints"]["trend"]
    checkpoints = {**news["checkpoints"], "trend": trend[-_KEPT:]}
    return {**news, "epochs": epochs[-_KEPT:], "checkpoints": checkpoints}


def fitted(live: Live, address: str, console: Console) -> RenderableType:
    """The screen with as much of it as the terminal has lines for."""
    width = console.width
    shown = screen(live, address, Room(width))
    for room in (Room(width, 3), Room(width, 3, False), Room(width, 1, False), Room(width, 0, False)):
        if len(console.render_lines(shown, pad=False)) < console.height:
            break
        shown = screen(live, address, room)
    return shown


def coloured(state: str) -> Text:
    """A state in its colour."""
    return Text(state, _COLOURS.get(state, ""))


def _heading(live: Live, address: str) -> RenderableType:
    restarts = f"{_many(live['restarts'], 'restart')}, {_many(live['failures'], 'failure')}"
    first = Text.assemble((live["name"], "bold"), "  ", coloured(live["state"]), f"  for {duration(live['duration'])}")
    second = _one_line(f"attempt {live['attempt']}, {restarts}, at {address}, {live['jid']}")
    second.stylize("dim")
    return Panel(Group(first, second), border_style=_COLOURS.get(live["state"], ""), padding=(0, 1))


def _many(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _trouble(live: Live) -> RenderableType:
    """The last failure and the cause of a failed checkpoint, if no good one came after it."""
    lines = []
    failure = live["last-failure"]
    if failure is not None:
        is_now = live["state"] in ("FAILED", "FAILING", "RESTARTING")
        lines.append(Text(_failure(live, failure), "red" if is_now else "yellow"))
    failed = live["checkpoints"]["last-failed"]
    trend = live["checkpoints"]["trend"]
    good = [each["id"] for each in trend if each["status"] == "COMPLETED"]
    if failed is not None and failed["id"] > max(good, default=0):
        lines.append(Text(f"Checkpoint {failed['id']} failed: {failed['message']}", "yellow"))
    return Group(*lines, Text("")) if lines else Group()


def _failure(live: Live, failure: Live) -> str:
    where = f", in {failure['operator']}, subtask {failure['subtask'] + 1}" if failure["operator"] else ""
    record = f", at record {failure['record']}" if failure["record"] is not None else ""
    return f"Failed {duration(live['now'] - failure['timestamp'])} ago: {failure['summary']}{where}{record}"


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


def _tasks(live: Live, room: Room) -> RenderableType:
    wide = ("Task", "×", "Status", "In/s", "Out/s", "Busy", "Back-pressured", "Watermark lag", "State")
    narrow = ("Task", "×", "Status", "In/s", "Out/s", "Busy", "Waits", "Lag", "State")
    columns = wide if room.is_wide else narrow
    rows = _table(columns, ("×", "In/s", "Out/s", "Busy", "Waits", "Watermark lag", "Lag", "State"), flexible="Task")
    bar = 8 if room.is_wide else 0
    for vertex in live["vertices"]:
        busy, held = vertex["busy"], vertex["back-pressured"]
        rows.add_row(
            _one_line(vertex["name"]),
            str(vertex["parallelism"]),
            coloured(vertex["status"]),
            rate(vertex["records-in-per-second"]),
            rate(vertex["records-out-per-second"]),
            Text(share(busy, bar), "red" if busy > _BUSY else ""),
            Text(share(held, bar), "yellow" if held > _WAITING else ""),
            duration(vertex["watermark-lag"]),
            size(vertex["state-size"]),
        )
    return _titled("Tasks", rows)


def _checkpoints(live: Live, room: Room) -> RenderableType:
    known = live["checkpoints"]
    trend = known["trend"]
    age = live["checkpoint-age"]
    counts = f"{known['completed']} completed, {known['failed']} failed, {known['in-progress']} in progress"
    good = "none yet that a restart could begin from" if age is None else f"the last good one is {duration(age)} old"
    summary = Text(f"{counts}; {good}", "red" if known["failed"] and age is None else "")
    if not trend or room.checkpoints == 0:
        return _titled("Checkpoints", summary)
    chart = Text.assemble(
        ("duration ", "bold"),
        (sparkline([each["duration"] for each in trend], max(10, room.width - _BESIDE_A_CHART)), "cyan"),
    )
    columns = ("ID", "Kind", "Status", "Triggered", "Duration", "Written", "State")
    rows = _table(columns, ("ID", "Duration", "Written", "State"), flexible="Triggered")
    for each in reversed(trend[-room.checkpoints :]):
        kind = "savepoint" if each["is-savepoint"] else "checkpoint"
        sizes = size(each["checkpointed-size"]), size(each["state-size"])
        triggered = moment(each["trigger-time"])
        triggered = triggered if room.is_wide else triggered.rpartition(" ")[2]
        times = _one_line(triggered), duration(each["duration"])
        rows.add_row(str(each["id"]), kind, coloured(each["status"]), *times, *sizes)
    return _titled("Checkpoints", Group(summary, chart, rows))


def _slots(live: Live, room: Room) -> RenderableType:
    slots = live["slots"]
    if not room.slots and slots:
        memory = size(sum(slot["memory"] for slot in slots))
        return _titled("Slots", Text(f"{len(slots)}, with {memory} of memory in all", "dim"))
    cpu_name = "Processor time" if room.is_wide else "CPU time"
    columns = ("Slot", "Host", "Process", "Memory", cpu_name, "State", "Subtasks")
    rows = _table(columns, ("Slot", "Process", "Memory", cpu_name, "State"), flexible="Host")
    for slot in slots:
        running = sum(each["status"] == "RUNNING" for each in slot["subtasks"])
        cpu = duration(slot["cpu-seconds"] * 1000)
        tasks = f"{running} of {len(slot['subtasks'])} running"
        sizes = size(slot["memory"]), cpu, size(slot["state-size"])
        rows.add_row(str(slot["index"]), _one_line(slot["host"]), str(slot["pid"]), *sizes, tasks)
    return _titled("Slots", rows if slots else Text("none yet", "dim"))


def _titled(title: str, content: RenderableType) -> RenderableType:
    return Group(Text(title, "bold underline"), content, Text(""))


def _table(columns: tuple[str, ...], right: tuple[str, ...], *, flexible: str) -> Table:
    """An empty table; where there is too little room, the flexible column is cut and the others stay whole."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for name in columns:
        justify: JustifyMethod = "right" if name in right else "left"
        made.add_column(name, justify=justify, no_wrap=name != flexible, overflow="ellipsis")
    return made


def _one_line(text: str) -> Text:
    """The cell of a flexible column: it is cut, not wrapped."""
    return Text(text, no_wrap=True, overflow="ellipsis")
