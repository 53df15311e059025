"""What the demo compares at its end: the model's rows, and a table of both sides."""

from __future__ import annotations

import threading

from rich.table import Table

from examples.orders.model import Row, expected
from examples.orders.results import BRANCH_STREAMS, Verdict
from examples.orders.settings import Feed, Settings


class Model:
    """Computes the expected rows on a thread while the job runs."""

    def __init__(self, settings: Settings, feed: Feed) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._thread = threading.Thread(target=self._run, args=(settings, feed), daemon=True)
        self._thread.start()

    def _run(self, settings: Settings, feed: Feed) -> None:
        self._rows = expected(settings, feed)

    def events(self) -> int | None:
        """The number of events of the job; None until the model has computed it."""
        return len(self._rows["batches"]) if self._rows else None

    def rows(self) -> dict[str, list[Row]]:
        """The rows of every stream."""
        self._thread.join()
        return self._rows


def results_table(verdicts: list[Verdict]) -> Table:
    """A table of the job's rows beside the model's."""
    by_stream = {verdict.stream: verdict for verdict in verdicts}
    title = "Rows written by the broken job, and those of an undisturbed run (plain Python)"
    table = Table(title=title, title_justify="left")
    for column in ("branch", "stream"):
        table.add_column(column)
    for column in ("broken", "undisturbed"):
        table.add_column(column, justify="right")
    table.add_column("")
    for branch, streams in BRANCH_STREAMS.items():
        for stream in streams:
            each = by_stream[stream]
            wrong = f"{each.missing:,} missing, {each.unexpected:,} not expected {each.complaint}"
            verdict = "[green]equal[/]" if each.equal else f"[red]DIFFERENT:[/] {wrong}"
            name = "events in batches" if stream == "batches" else stream
            table.add_row(branch, name, f"{each.rows:,}", f"{each.expected:,}", verdict)
            branch = ""
    return table
