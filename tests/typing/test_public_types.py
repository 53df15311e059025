"""The public API as a user's type checker sees it: right programs pass in strict mode, each mistake is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

PROGRAMS = Path(__file__).parent / "programs"
ERROR = re.compile(r"^[^:]+:(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)
MARK = re.compile(r"# refused: ([\w-]+)")


def marks_of(program: Path) -> list[tuple[int, str]]:
    lines = enumerate(program.read_text(encoding="utf-8").splitlines(), 1)
    return [(number, mark[1]) for number, line in lines if (mark := MARK.search(line))]


@pytest.mark.parametrize("name", ["right.py", "wrong.py"])
def test_a_strict_checker_refuses_the_mistakes_and_nothing_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYPYPATH", str(Path(__file__).parents[2] / "src"))
    program = PROGRAMS / name
    options = ["--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    output, problems, _ = api.run([*options, str(program)])
    assert problems == ""
    found = sorted({(int(line), code) for line, code in ERROR.findall(output)})
    assert found == marks_of(program), output
    assert (name == "wrong.py") == bool(found)
