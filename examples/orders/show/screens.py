"""Screens that show a scene: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from examples.orders.show.scene import Act, Checkpoint, Scene, size

_PLAIN_EVERY_S = 5.0
_CHECKPOINTS_SHOWN = 8


class Screen(Protocol):
    """Shows the progress of the demo."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def tick(self) -> None:
        """Called every fraction of a second."""

    def say(self, text: str) -> None:
        """Show what the demo does now."""

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Show a completed checkpoint."""

    def act(self, act: Act) -> None:
        """Show the changed state of an act."""


def screen_for(console: Console, scene: Scene) -> Screen:
    """The kind of screen that the console can show."""
    return LiveScreen(console, scene) if console.is_terminal else PlainScreen(console, scene)


class PlainScreen:
    """Prints a line for each event of the demo, and one with figures every few seconds."""

    def __init__(self, console: Console, scene: Scene) -> None:
        self._console = console
        self._scene = scene
        self._shown_at = 0.0
        self._shown: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._line(self._scene.title)
        for number, act in enumerate(self._scene.acts, 1):
            self._line(f"  {number}. {act.what}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def tick(self) -> None:
        """Figures, every few seconds."""
        scene = self._scene
        if scene.rows == self._shown or scene.elapsed() - self._shown_at < _PLAIN_EVERY_S:
            return
        self._shown_at, self._shown = scene.elapsed(), scene.rows
        shown = {name: scene.rows.get(stream, 0) for name, stream in scene.branches.items()}
        rate = scene.rates.get("batches", 0.0)
        self._line(f"{rate:,.0f} events/s; visible: " + ", ".join(f"{rows:,} {name}" for name, rows in shown.items()))

    def say(self, text: str) -> None:
        self._scene.doing = text
        self._line(text)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        self._line(str(checkpoint))

    def act(self, act: Act) -> None:
        self._line(_act_line(act))

    def _line(self, text: str) -> None:
        self._console.print(f"{self._scene.elapsed():6.1f} s  {text}", highlight=False, markup=False, soft_wrap=True)


def _act_line(act: Act) -> str:
    if act.seconds is None:
        return f"{act.what}: {act.state}"
    return f"{act.what}: running again {act.seconds:.1f} s later, {act.basis}"


class LiveScreen:
    """A live view of the faults, the branches and the checkpoints."""

    def __init__(self, console: Console, scene: Scene) -> None:
        self._scene = scene
        self._spinner = Spinner("dots")
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def tick(self) -> None:
        pass

    def say(self, text: str) -> None:
        self._scene.doing = text

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        pass

    def act(self, act: Act) -> None:
        pass

    def _draw(self) -> RenderableType:
        scene = self._scene
        now = Table.grid(padding=(0, 1))
        self._spinner.text = Text.assemble((f"{scene.elapsed():5.1f} s  ", "dim"), (scene.doing, "bold"))
        now.add_row(self._spinner)
        if scene.total:
            done = min(scene.rows.get("batches", 0), scene.total)
            bar = Table.grid(padding=(0, 1))
            bar.add_row(ProgressBar(total=scene.total, completed=done, width=40), f"{done:,} of {scene.total:,} events")
            now.add_row(bar)
        beside = Table.grid(padding=(0, 3))
        beside.add_row(self._branches(), self._checkpoints())
        everything = Group(now, Text(), self._acts(), Text(), beside)
        hint = "a result is visible when the checkpoint that contains it is complete"
        return Panel(everything, title=scene.title, title_align="left", subtitle=hint, subtitle_align="left")

    def _acts(self) -> Table:
        table = Table(title="Broken on purpose", title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column in ("", "what", "running again after", "went on from"):
            table.add_column(column)
        marks = {"to come": ("·", "dim"), "recovered": ("✓", "green")}
        for act in self._scene.acts:
            mark, style = marks.get(act.state, ("✗", "red"))
            after = f"{act.seconds:.1f} s" if act.seconds is not None else "" if act.state == "to come" else act.state
            table.add_row(Text(mark, style), Text(act.what, style if style == "dim" else ""), after, act.basis)
        return table

    def _branches(self) -> Table:
        table = Table(title="Results that readers see", title_justify="left", box=None, padding=(0, 2, 0, 0))
        table.add_column("branch")
        table.add_column("rows", justify="right")
        table.add_column("per second", justify="right")
        for name, stream in self._scene.branches.items():
            rows, rate = self._scene.rows.get(stream, 0), self._scene.rates.get(stream, 0.0)
            table.add_row(name, f"{rows:,}", f"{rate:,.0f}")
        return table

    def _checkpoints(self) -> Table:
        table = Table(title="Checkpoints", title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column in ("id", "took", "written", "state"):
            table.add_column(column, justify="right")
        for each in self._scene.checkpoints[-_CHECKPOINTS_SHOWN:]:
            name = f"{each.id} (savepoint)" if "SAVEPOINT" in each.kind else str(each.id)
            table.add_row(name, f"{each.duration_ms} ms", size(each.written_bytes), size(each.state_bytes))
        return table
