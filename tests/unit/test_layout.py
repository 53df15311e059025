"""The layout of `src`: a module is found by its name, and fits on a screen or a few."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import rekindle

SOURCES = Path(rekindle.__file__).parent
MODULES = sorted(path for path in SOURCES.rglob("*.py") if path.name != "__init__.py")
#: PyFlink's layout has one module of each name; the other one is the engine's, in another package.
PYFLINKS = {"base.py", "data_stream.py", "environment_settings.py", "table.py", "types.py"}
MOST_LINES_OF_A_FUNCTION = 50
MOST_LINES_OF_A_FILE = 650
#: One list of all settings: it grows with them.
LISTS = {"config.py"}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCES).as_posix()


def test_no_two_modules_share_a_name_but_where_pyflinks_layout_asks_for_it() -> None:
    by_name = defaultdict(list)
    for path in MODULES:
        by_name[path.name].append(name_of(path))
    shared = {name: paths for name, paths in by_name.items() if len(paths) > 1}
    assert shared.keys() <= PYFLINKS, shared


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_and_files_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert name_of(path) in LISTS or text.count("\n") <= MOST_LINES_OF_A_FILE
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}
