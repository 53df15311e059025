"""`JdbcExactlyOnceOptions`: where an exactly-once sink notes its commits."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rekindle.errors import GraphError

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")


@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """The ledger of an exactly-once sink: a table with one row per subtask, in the database that the sink writes.

    >>> JdbcExactlyOnceOptions.builder().with_ledger_table("shop.commits").build()
    JdbcExactlyOnceOptions(ledger_table='shop.commits')
    """

    ledger_table: str = "rekindle_ledger"

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

        def with_ledger_table(self, ledger_table: str) -> JdbcExactlyOnceOptions.Builder:
            """Set the table's name, with or without a schema. It is made at the start if it is missing."""
            if not isinstance(ledger_table, str) or _TABLE.fullmatch(ledger_table) is None:
                raise GraphError(
                    "with_ledger_table() takes a name of letters, digits and '_', perhaps with a schema before it as "
                    f"in shop.commits, not {ledger_table!r}."
                )
            self._ledger_table = ledger_table
            return self

        def build(self) -> JdbcExactlyOnceOptions:
            """Return the options."""
            return JdbcExactlyOnceOptions(self._ledger_table)
