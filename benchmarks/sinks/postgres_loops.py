"""The bare psycopg loops: the same upserts in batches, one transaction each, row by row and with COPY."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

from benchmarks.sinks.workload import BATCH, Run, Values, batches

#: Rows of an interval, about as many as an exactly-once job has between two checkpoints.
INTERVAL = 20 * BATCH
COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR(40), amount DOUBLE PRECISION, updated BIGINT"
NAMES = "id, name, amount, updated"
_UPDATE = "DO UPDATE SET name = EXCLUDED.name, amount = EXCLUDED.amount, updated = EXCLUDED.updated"
UPSERT = f"INSERT INTO {{table}} ({NAMES}) VALUES ({{values}}) ON CONFLICT (id) {_UPDATE}"


def executemany(connection: Any, table: str) -> Callable[[list[Values]], None]:
    """Return the loop's body: `executemany`, which psycopg runs in a pipeline."""
    sql = UPSERT.format(table=table, values="%s, %s, %s, %s")

    def write(rows: list[Values]) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(sql, rows)

    return write


def copy_and_insert(connection: Any, table: str) -> Callable[[list[Values]], None]:
    """Return the loop's body: COPY into a temporary table, then INSERT ... SELECT ... ON CONFLICT."""
    connection.execute(f"CREATE TEMPORARY TABLE staged (LIKE {table})")
    newest = f"SELECT DISTINCT ON (id) {NAMES} FROM staged ORDER BY id, ctid DESC"
    insert = f"INSERT INTO {table} ({NAMES}) {newest} ON CONFLICT (id) {_UPDATE}"

    def write(rows: list[Values]) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute("TRUNCATE staged")
            with cursor.copy(f"COPY staged ({NAMES}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            cursor.execute(insert)

    return write


def copy_and_insert_rarely(connection: Any, table: str) -> Callable[[list[Values]], None]:
    """Return the loop's body: COPY each batch, and one INSERT per interval, as an exactly-once sink has them."""
    write = copy_and_insert(connection, table)
    waiting: list[Values] = []

    def write_interval(rows: list[Values]) -> None:
        waiting.extend(rows)
        if len(waiting) >= INTERVAL or len(rows) < BATCH:
            write(waiting)
            waiting.clear()

    return write_interval


def run(name: str, form: Callable[[Any, str], Any], conninfo: str, table: str, records: int, keys: int) -> Run:
    """Write all rows with one connection; making the rows is part of the time, as it is for the engines."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        write = form(connection, table)
        began = time.perf_counter()
        for rows in batches(records, keys):
            write(rows)
        write([])
        return Run(name, records, time.perf_counter() - began)
