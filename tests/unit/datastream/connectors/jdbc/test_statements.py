"""Placeholders and the shapes of statements."""

from __future__ import annotations

import pytest
from sqlalchemy.dialects import postgresql, sqlite

from rekindle.datastream.connectors.jdbc.statements import (
    count_placeholders,
    insert_shape,
    numbered,
    spelled_for,
    table_of,
)

PSYCOPG, SQLITE = postgresql.dialect(paramstyle="format"), sqlite.dialect()


@pytest.mark.parametrize(
    ("sql", "count", "spelled"),
    [
        ("VALUES (?, ?)", 2, "VALUES (%s, %s)"),
        ("'it''s ?' || ?", 1, "'it''s ?' || %s"),
        (r"E'\'?' || ?", 1, r"E'\'?' || %s"),
        ('"a?b" = ?', 1, '"a?b" = %s'),
        ("? -- really?\n, ?", 2, "%s -- really?\n, %s"),
        ("? /* why? /* really? */ yes? */ + ?", 2, "%s /* why? /* really? */ yes? */ + %s"),
        ("$$ ? $$ || $x$ ? $$ ? $x$ || ?", 1, "$$ ? $$ || $x$ ? $$ ? $x$ || %s"),
        ("a ?? ? AND b ??| ?", 2, "a ? %s AND b ?| %s"),
        ("n % 2 = ? AND t LIKE '%x'", 1, "n %% 2 = %s AND t LIKE '%%x'"),
        ("/* open ?", 0, "/* open ?"),
        ("`a?b` = ?", 1, "`a?b` = %s"),
    ],
)
def test_placeholders_are_found_outside_of_quotes_and_comments(sql: str, count: int, spelled: str) -> None:
    assert count_placeholders(sql) == count
    assert spelled_for(PSYCOPG, sql) == spelled
    assert numbered(sql).count("$1") == (count > 0) + sql.count("$1")
    assert spelled_for(SQLITE, sql).count("?") == sql.count("?") - sql.count("??")


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("insert into t(a,b) values(?,?);", ()),
        ('INSERT INTO s."T" ("A", b) VALUES (?, ?)', ()),
        ("INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT DO NOTHING", ()),
        ("INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO NOTHING", ()),
        ("INSERT INTO t (a, b) VALUES (?, ?)\nON CONFLICT (a)\nDO UPDATE SET b = excluded.b", ("a",)),
        ("INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a, b) DO UPDATE SET a=EXCLUDED.a", ("a", "b")),
    ],
)
def test_statements_with_a_bulk_form(sql: str, key: tuple[str, ...]) -> None:
    shape = insert_shape(sql)
    assert shape is not None
    assert shape.replaced_by == key


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET a = ? WHERE b = ?",
        "INSERT INTO t VALUES (?, ?)",
        "INSERT INTO t (a, b) VALUES (?, now())",
        "INSERT INTO t (a, b) VALUES (?, lower(?))",
        "INSERT INTO t (a, b) VALUES (?, ?) RETURNING a",
        "INSERT INTO t (a, b) SELECT ?, ?",
        "INSERT INTO t (a, n) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET n = t.n + EXCLUDED.n",
        "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.a",
        "INSERT INTO t (a, b, c) VALUES (?, ?, ?) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b",
        "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b WHERE t.b < EXCLUDED.b",
        "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT ON CONSTRAINT k DO UPDATE SET b = EXCLUDED.b",
    ],
)
def test_statements_without_one(sql: str) -> None:
    assert insert_shape(sql) is None


def test_names_of_tables() -> None:
    assert table_of('DELETE FROM "Big One" WHERE a = ?') == '"Big One"'
    assert table_of("MERGE INTO shop.t USING s ON true") == "shop.t"
    assert table_of("CALL f(?)") is None
