"""Read the tables of other projects' names that lie in the package as text; `tools/key_tables.py` writes them."""

from __future__ import annotations


def table_lines(package: str, name: str) -> list[str]:
    """The lines of a table without the comment at its head.

    >>> "rest.port" in table_lines("rekindle.common", "flink_keys.txt")
    True
    """
    from importlib.resources import files  # importing it takes longer than everything else here

    text = files(package).joinpath(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]
