"""The layout of `src`: a class is found by its name, and a module fits on a screen or a few."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import rekindle

SOURCES = Path(rekindle.__file__).parent
MODULES = sorted(path for path in SOURCES.rglob("*.py") if path.name != "__init__.py")
#: PyFlink has one for streams, and one for tables.
PYFLINKS = {"AggregateFunction"}
MOST_LINES_OF_A_FUNCTION = 50
MOST_LINES_OF_A_FILE = 650
#: One list of all settings: it grows with them.
LISTS = {"config.py"}


#: A docstring begins with a noun that one can search for, or with a verb.
NO_NOUN = re.compile(r"(what|whatever|who|whose|whoever|nobody|no one|how (many|much))\b", re.IGNORECASE)


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def name_of(path: Path) -> str:
    return path.relative_to(SOURCES).as_posix()


def test_no_two_classes_share_a_name_but_where_pyflink_has_both() -> None:
    by_name = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                by_name[node.name].append(name_of(path))
    shared = {name: paths for name, paths in by_name.items() if len(paths) > 1}
    assert shared.keys() <= PYFLINKS, shared


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_and_files_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert name_of(path) in LISTS or text.count("\n") <= MOST_LINES_OF_A_FILE
    functions = [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=name_of)
def test_docstrings_begin_with_a_noun_or_a_verb(path: Path) -> None:
    with_docstring = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in nodes_of(path) if isinstance(node, with_docstring)]
    found = [text for text in map(ast.get_docstring, nodes) if text is not None and NO_NOUN.match(text)]
    assert found == []


def test_no_test_module_imports_another() -> None:
    tests = Path(__file__).parents[1]
    found = [
        f"{path.relative_to(tests)}: {node.module}"
        for path in sorted(tests.rglob("test_*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and re.search(r"(^|\.)test_\w+$", node.module or "")
    ]
    assert found == []
