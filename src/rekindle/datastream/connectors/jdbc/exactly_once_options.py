"""`JdbcExactlyOnceOptions`: where an exactly-once sink notes its commits, and what it does with refused rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rekindle.errors import GraphError

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")


@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """The ledger of an exactly-once sink: a table with one row per subtask, in the database that the sink writes.

    >>> JdbcExactlyOnceOptions.builder().with_ledger_table("shop.commits").build()
    JdbcExactlyOnceOptions(ledger_table='shop.commits', refused_rows='fail')
    """

    ledger_table: str = "rekindle_ledger"
    refused_rows: str = "fail"

    @staticmethod
    def defaults() -> JdbcExactlyOnceOptions:
        """Return the options with the table `rekindle_ledger`."""
        return JdbcExactlyOnceOptions()

    @staticmethod
    def builder() -> JdbcExactlyOnceOptions.Builder:
        """Return a builder with the defaults."""
        return JdbcExactlyOnceOptions.Builder()

    class Builder:
        """Builds `JdbcExactlyOnceOptions`."""

        def __init__(self) -> None:
            """Begin with the defaults."""
            self._ledger_table = JdbcExactlyOnceOptions.ledger_table
            self._refused_rows = JdbcExactlyOnceOptions.refused_rows

        def with_ledger_table(self, ledger_table: str) -> JdbcExactlyOnceOptions.Builder:
            """Set the table's name, with or without a schema. It is made at the start if it is missing."""
            if not isinstance(ledger_table, str) or _TABLE.fullmatch(ledger_table) is None:
                raise GraphError(
                    "with_ledger_table() takes a name of letters, digits and '_', perhaps with a schema before it as "
                    f"in shop.commits, not {ledger_table!r}."
                )
            self._ledger_table = ledger_table
            return self

        def with_refused_rows(self, refused_rows: str) -> JdbcExactlyOnceOptions.Builder:
            """Set what a commit does with a row that the database refuses then: "fail" the job, or "drop" the row.

            A dropped row is logged as an error; the other rows of the checkpoint are written.
            """
            if refused_rows not in ("fail", "drop"):
                raise GraphError(f"with_refused_rows() takes 'fail' or 'drop', not {refused_rows!r}.")
            self._refused_rows = refused_rows
            return self

        def build(self) -> JdbcExactlyOnceOptions:
            """Return the options."""
            return JdbcExactlyOnceOptions(self._ledger_table, self._refused_rows)
