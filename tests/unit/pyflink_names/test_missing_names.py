"""Every name that PyFlink 1.20 and 2.3 let one import is here, or answers with a sentence; members of classes too."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rekindle.pyflink_names.missing_names as missing_names
from rekindle import pyflink_names

LISTED: dict[str, Any] = json.loads((Path(missing_names.__file__).parent / "listed_names.json").read_text())


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    pyflink_names.install()
    yield
    pyflink_names.uninstall()


@pytest.mark.parametrize("name", sorted(LISTED))
def test_each_name_is_there_or_the_table_says_why_not(name: str) -> None:
    listed = LISTED[name]
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        assert missing_names.has_reason(name)
        return
    for each in listed["names"]:
        if not hasattr(module, each):
            with pytest.raises(AttributeError) as raised:
                getattr(module, each)
            assert missing_names.has_reason(str(raised.value).partition(" ")[0]), raised.value
    for kind, members in listed["members"].items():
        found = getattr(module, kind, None)
        if not isinstance(found, type):
            continue
        for member in " ".join(members.values()).split():
            full = f"{name}.{kind}.{member}"
            assert hasattr(found, member) or member in annotated(found) or missing_names.has_reason(full), full


def annotated(kind: type) -> set[str]:
    return {each for base in kind.__mro__ for each in getattr(base, "__annotations__", ())}


def test_the_list_is_whole() -> None:
    assert sum(len(each["names"]) for each in LISTED.values()) > 1500
    assert "both pyflink.common.time:Duration" in LISTED["pyflink.datastream.state"]["names"].values()


def test_a_missing_name_is_an_import_error_with_the_sentence() -> None:
    with pytest.raises(ImportError, match=r"ExecutionMode.* was in PyFlink up to 1.20 and is gone since 2.0: .*BATCH"):
        from pyflink.common import ExecutionMode  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'NoSuchName'"):
        from pyflink.common import NoSuchName  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match=r"pyflink.table.sinks was in PyFlink .*: use TableDescriptor"):
        importlib.import_module("pyflink.table.sinks")


def test_a_missing_member_is_an_attribute_error_with_the_sentence() -> None:
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.table.types import DataTypes

    env = StreamExecutionEnvironment.get_execution_environment()
    for owner in (env, StreamExecutionEnvironment):
        assert not hasattr(owner, "register_type")
        with pytest.raises(AttributeError, match=r"register_type was in PyFlink up to 1.20 .*: there is no Kryo here"):
            _ = owner.register_type
    with pytest.raises(AttributeError, match=r"DataTypes.LIST_VIEW of PyFlink is not in Rekindle"):
        _ = DataTypes.LIST_VIEW


@pytest.mark.parametrize(
    "line",
    [
        "from pyflink.common import ExecutionMode",
        "import pyflink.datastream.window as window; window.mod_inverse",
        "import pyflink.table.sinks",
        "from pyflink.datastream import StreamExecutionEnvironment as E; E.get_execution_environment().register_type",
        "from pyflink.datastream import StreamExecutionEnvironment as E; E.register_type",
    ],
)
def test_no_frame_of_the_answer_is_in_the_traceback(tmp_path: Path, line: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{line}\n")
    code = (
        f"import sys\nfrom rekindle.datastream.main_program import MainProgram\nMainProgram({str(program)!r}).run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    last_file = [each for each in lines if each.startswith("  File ")][-1]
    assert str(program) in last_file, done.stderr
    assert "PyFlink" in lines[-1], done.stderr
