"""Writes a table into another one: Spark runs the query of a bounded table, a job of streams that of an endless one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rekindle.clock import SystemClock
from rekindle.common.data_types import DataType, IntegralType, RowType
from rekindle.common.job_client import JobClient
from rekindle.common.typeinfo import Types
from rekindle.datastream import find_launcher
from rekindle.datastream.data_stream import DataStream
from rekindle.errors import GraphError
from rekindle.table.connectors import check_sink, columns_of, files_of, format_options, make_directory
from rekindle.table.expression import quoted
from rekindle.table.finished_job import FinishedJob
from rekindle.table.flow import Flow
from rekindle.table.grouping import GroupChanges, Grouping, KeyValues
from rekindle.table.row_text import row_text
from rekindle.table.stream_rows import to_text
from rekindle.table.table_descriptor import TableDescriptor
from rekindle.table.table_result import TableResult
from rekindle.table.views import is_endless

if TYPE_CHECKING:
    from rekindle.table.table import Table
    from rekindle.table.table_environment import TableEnvironment


class Insertion:
    """The rows of one table, written into a table of a connector."""

    def __init__(self, environment: TableEnvironment, of: Table, name: str, target: TableDescriptor) -> None:
        self._env = environment
        self._of = of
        self._name = name
        self._target = target
        self._connector = check_sink(name, target)
        self._identifier = target.options.get("print-identifier")

    def run(self) -> TableResult:
        """Write the rows; a job that may never end is only started."""
        clock = SystemClock()
        started = clock.monotonic()
        if self._connector == "filesystem":
            self._write_files()
        else:
            known = len(self._env._stream_env._transformations)
            texts = self._stream()
            if texts is not None:
                return self._launch(texts, known)
            self._write(self._texts())
        return TableResult(RowType(), list, JobClient(FinishedJob(round(1000 * (clock.monotonic() - started)))))

    # -- bounded tables -----------------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        path, file_format = files_of(self._name, self._target)
        make_directory(path)
        options = format_options(file_format, self._target.options)
        self._env._engine().write_files(self._fitted(), path, file_format, options)

    def _texts(self) -> Iterable[str]:
        """Return what a bounded table writes: each row, or in streaming mode each change of a group's row."""
        engine, grouping = self._env._engine(), self._of._grouping
        if grouping is None or not self._env._is_streaming() or not self._has_columns(self._of._row_type()):
            return map(row_text, engine.rows(self._fitted()))
        rows = engine.rows(engine.frame(grouping.prepared._query))
        return [row_text(values, kind) for kind, values in grouping.layout.all_changes(rows)]

    def _write(self, texts: Iterable[str]) -> None:
        for text in texts:
            if self._connector == "print":
                print(f"{self._identifier}> {text}" if self._identifier else text)

    def _fitted(self) -> Any:
        """Return the frame of the table in the columns of the one that it is written into, by position."""
        found = self._of._row_type()
        pairs = zip(found.field_names(), self._columns(found), strict=True)
        columns = [f"CAST({quoted(old)} AS {new.data_type.spark_name()}) AS {quoted(new.name)}" for old, new in pairs]
        return self._env._engine().frame(self._of._step(f"SELECT {', '.join(columns)} FROM \0")._query)

    # -- streams ------------------------------------------------------------------------------------------------------

    def _stream(self) -> DataStream | None:
        """Return what the table writes as a stream of texts; None if Spark runs the query."""
        flow, grouping = self._of._flow, self._of._grouping
        if flow is not None and not flow.steps:
            return flow.stream.map(to_text, Types.STRING())
        if not is_endless(self._of._query):
            return None
        before = flow if flow is not None else grouping.prepared._flow if grouping is not None else None
        if before is None:
            return None  # the engine refuses it, with the name of the stream
        found = self._of._row_type()
        if not self._has_columns(found):
            wanted = columns_of(self._name, self._target)
            raise GraphError(f"The query has {found.sql()}, but the table '{self._name}' has {wanted.sql()}.")
        if flow is not None:
            return flow.rows(found).map(to_text, Types.STRING())
        assert grouping is not None, "else there is no stream before it"
        return _changes(before, grouping, found)

    def _launch(self, texts: DataStream, known: int) -> TableResult:
        """Run a job of the stream alone, which may never end."""
        sink = texts.print(self._identifier) if self._connector == "print" else texts.add_sink(_forget)
        made = self._env._stream_env._transformations[known:]
        program = self._env._only(sink._operator, "insert-into", *made)
        return TableResult(RowType(), list, JobClient(find_launcher.load_launcher().launch(program)))

    # -- columns ------------------------------------------------------------------------------------------------------

    def _columns(self, found: RowType) -> RowType:
        wanted = columns_of(self._name, self._target)
        if len(wanted) != len(found):
            raise GraphError(f"The query has {len(found)} columns, but the table '{self._name}' has {len(wanted)}.")
        return wanted

    def _has_columns(self, found: RowType) -> bool:
        """Return whether the rows go into the other table as they are."""
        pairs = zip(found.field_types(), self._columns(found).field_types(), strict=True)
        return all(_is_same(old, new) for old, new in pairs)


def _is_same(old: DataType, new: DataType) -> bool:
    return old.spark_name() == new.spark_name() or (isinstance(old, IntegralType) and isinstance(new, IntegralType))


def _changes(flow: Flow, grouping: Grouping, grouped: RowType) -> DataStream:
    """Return the changes of the groups of a stream, as texts."""
    layout = grouping.layout
    prepared = grouping.prepared._row_type()
    key_types = [each.to_type_info() for each in prepared.field_types()[: layout.keys]]
    columns = dict(zip(layout.outputs, grouped.field_types(), strict=True))
    aggregates = [columns[layout.keys + index].to_type_info() for index in range(len(layout.aggregates))]
    keyed = flow.rows(prepared).key_by(KeyValues(layout.keys), Types.TUPLE(key_types))
    return keyed.process(GroupChanges(layout, Types.ROW(aggregates)), Types.STRING()).name("GroupAggregate")


def _forget(text: str) -> None:
    """Write nothing, as the connector `blackhole`."""
