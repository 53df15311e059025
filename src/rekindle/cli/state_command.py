"""`rekindle state`: look into the state of a checkpoint or savepoint, and compare two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rekindle.cli.cells_for_people import size
from rekindle.cli.exit_codes import CommandError, ExitCode
from rekindle.cli.printed import print_result, print_sentence, table
from rekindle.cli.settings_sources import configuration_of, store_options_of
from rekindle.cli.shared_options import ConfigOption, JsonOption, SettingsOption

if TYPE_CHECKING:
    from rekindle.snapshots.find_snapshot import Snapshot

PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="A checkpoint, a savepoint, or a job's folder.")]
CheckpointOption = Annotated[int | None, typer.Option("--checkpoint", metavar="ID", help="This one of the folder.")]
StatesOption = Annotated[
    list[str] | None, typer.Option("--state", metavar="NAME", help="Only this state; may be given several times.")
]
LimitOption = Annotated[int, typer.Option("--limit", min=0, help="The most rows; 0: all.")]
PickleOption = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Unpickle values, which runs code of the checkpoint: only if you trust it."),
]
app = typer.Typer(help="Look into the state of checkpoints and savepoints.", no_args_is_help=True)


def _snapshot(path: str, checkpoint: int | None, config: str | None, settings: list[str] | None) -> Snapshot:
    from rekindle.checkpoint.store.open_store import absolute
    from rekindle.snapshots.find_snapshot import find_snapshot

    return find_snapshot(absolute(path), checkpoint, store_options_of(config, settings))


@contextmanager
def _names_are_looked_up() -> Iterator[None]:
    """An operator or a state that is not in the checkpoint is not found; in a job it would be incompatible."""
    from rekindle.errors import IncompatibleStateError

    try:
        yield
    except IncompatibleStateError as error:
        raise CommandError(str(error), ExitCode.NOT_FOUND) from None


@app.command("show")
def show(
    path: PathArgument,
    checkpoint: CheckpointOption = None,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the operators of a checkpoint, and their states with their types."""
    from rich.console import Group

    from rekindle.cli.state_tables import overview, read_table, rows_of
    from rekindle.snapshots.table import ReadOptions
    from rekindle.snapshots.tables import TableName

    snapshot = _snapshot(path, checkpoint, config, settings)
    metadata, operators = overview(snapshot)
    states = list(rows_of(read_table(snapshot, TableName.STATES, None, ReadOptions())))
    kinds = ("keyed", "timers", "operator_state", "source", "in_flight")
    rows = [
        (each["name"], ", ".join(kind.replace("_", " ") for kind in kinds if each[kind]), size(each["full_bytes"]))
        for each in operators
    ]
    named = [(each["operator"], each["state"], each["kind"], each["type"] or each["column_type"]) for each in states]
    shown = Group(
        f"{metadata['kind']} {metadata['checkpoint_id']} of job '{metadata['job_name']}', {metadata['path']}",
        "",
        table(("Operator", "Has", "Size"), rows, right=("Size",)),
        "",
        table(("Operator", "State", "Kind", "Type"), named),
    )
    print_result({**metadata, "operators": operators, "states": states}, shown, as_json=as_json)


@app.command("query")
def query(
    path: PathArgument,
    operator: Annotated[str | None, typer.Argument(metavar="[OPERATOR]", help="Its uid, its id, or its name.")] = None,
    table_name: Annotated[
        str | None,
        typer.Option("--table", help="keyed_state, list_state, broadcast_state, timers, source_positions, watermarks."),
    ] = None,
    states: StatesOption = None,
    key: Annotated[str | None, typer.Option("--key", help="Only this key: as text, or as JSON.")] = None,
    sql: Annotated[
        str | None, typer.Option("--sql", help="Ask with Spark, which is started for it; the table's name is `state`.")
    ] = None,
    limit: LimitOption = 20,
    allow_pickle: PickleOption = False,
    checkpoint: CheckpointOption = None,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show rows of a table of a checkpoint: by default the keyed state of an operator, a row per key."""
    from rekindle.cli import state_questions

    with _names_are_looked_up():
        if sql is not None:
            asked = state_questions.SqlQuestion(sql, operator, table_name, tuple(states or ()), allow_pickle)
            rows, more = state_questions.ask_spark(path, checkpoint, configuration_of(config, settings), asked, limit)
        else:
            snapshot = _snapshot(path, checkpoint, config, settings)
            asked_table = state_questions.asked_table(snapshot, operator, table_name, states, key, allow_pickle)
            rows, more = state_questions.first_rows(asked_table, limit or None)
    if key is not None and not rows:
        raise CommandError(f"Operator '{operator}' has no state for the key {key}.", ExitCode.NOT_FOUND)
    print_result({"rows": rows, "more": more}, _rows_shown(rows), as_json=as_json)
    if more and not as_json:
        print_sentence(f"There are more than {limit} rows: --limit 0 shows all.")


def _rows_shown(rows: list[dict[str, Any]]) -> Any:
    if not rows:
        return "There are no rows."
    return table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])


def _cell(value: Any) -> str:
    import msgspec

    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value, enc_hook=str).decode()


@app.command("diff")
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A checkpoint or savepoint.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="A later one.")],
    operator: Annotated[str | None, typer.Argument(metavar="[OPERATOR]", help="Its uid, its id, or its name.")] = None,
    states: StatesOption = None,
    limit: LimitOption = 20,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two checkpoints: how many keys of each operator differ, or which keys of one, and how."""
    from rekindle.cli import state_questions

    old, new = (_snapshot(path, None, config, settings) for path in (before, after))
    if operator is None:
        counts = state_questions.change_counts(old, new)
        columns = ("name", "operator_id", "added", "removed", "changed")
        shown = table(columns, [[row[name] for name in columns] for row in counts], right=columns[2:])
        print_result({"operators": counts}, shown, as_json=as_json)
        return
    with _names_are_looked_up():
        changes, more = state_questions.changes_of(old, new, operator, states, limit or None)
    kinds = Counter(change["change"] for change in changes)
    nothing = f"The keyed state of operator '{operator}' is the same."
    print_result({"changes": changes, "more": more}, _rows_shown(changes) if changes else nothing, as_json=as_json)
    if changes and not as_json:
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        print_sentence(f"{told}{f'; there are more than {limit}: --limit 0 shows all' if more else ''}.")


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="state")
