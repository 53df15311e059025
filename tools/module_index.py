"""Writes `docs/modules.md`: every module of the engine, with the first sentence of its docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "modules.md"
SOURCES = REPOSITORY / "src" / "rekindle"
#: A full stop ends the sentence where a space and the beginning of another one follow.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])")
_HEAD = """\
# Every module

The packages of `src/rekindle`, and the first sentence of each module. The [architecture](architecture.md) page says \
how they work together. `make index` writes this page; a test fails when it is stale.
"""


def page_text() -> str:
    """The whole page, in Markdown."""
    folders = sorted(path.parent for path in SOURCES.rglob("__init__.py"))
    return _HEAD + "".join(_section(folder) for folder in folders)


def _section(folder: Path) -> str:
    name = folder.relative_to(SOURCES.parent).as_posix()
    sentence = first_sentence(folder / "__init__.py")
    lines = [f"\n## {name}\n", *([f"{sentence}\n"] if sentence else []), *_rows(folder)]
    return "\n".join(lines) + "\n"


def _rows(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py":
            link = path.relative_to(REPOSITORY).as_posix()
            yield f"- [{path.name}](../{link}): {first_sentence(path)}"


def first_sentence(path: Path) -> str:
    """The first sentence of a module's docstring on one line, empty if there is none."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return _SENTENCE_END.split(paragraph)[0]


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
