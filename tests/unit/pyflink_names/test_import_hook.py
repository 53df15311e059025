"""`import pyflink` after `install()`: the modules of Rekindle themselves, and clear words for what is not there."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rekindle import pyflink_names
from rekindle.datastream.main_program import MainProgram
from rekindle.errors import JavaOnlyError, JobExecutionError
from rekindle.graph.python_files import program_modules
from rekindle.spark.java_error import as_java_error, error_for_program


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    pyflink_names.install()
    yield
    pyflink_names.uninstall()


@pytest.mark.parametrize(
    "name",
    ["common", "common.typeinfo", "datastream", "datastream.functions", "datastream.connectors.kafka", "metrics"],
)
def test_a_module_of_pyflink_is_the_module_of_rekindle_itself(name: str) -> None:
    ours = importlib.import_module(f"rekindle.{name}")
    assert importlib.import_module(f"pyflink.{name}") is ours
    assert ours.__spec__ is not None
    assert ours.__name__ == ours.__spec__.name == f"rekindle.{name}"


def test_names_are_the_same_objects_under_both_names() -> None:
    from pyflink.common import Row, Types
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.datastream.functions import KeyedProcessFunction

    from rekindle import common, datastream

    assert Row is common.Row
    assert Types is common.Types
    assert StreamExecutionEnvironment is datastream.StreamExecutionEnvironment
    assert KeyedProcessFunction is datastream.KeyedProcessFunction
    assert pickle.loads(pickle.dumps(Types.STRING())) == common.Types.STRING()


def test_the_version_is_that_of_the_compared_pyflink() -> None:
    import pyflink
    from pyflink.version import __version__

    assert pyflink.__version__ == __version__ == "2.3.0"


@pytest.mark.parametrize("name", ["pyflink.ml", "pyflink.datastream.connectors.pulsar", "pyflink.spark"])
def test_a_module_that_is_not_here_is_named(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"Rekindle.*{name}|{name}.*Rekindle"):
        importlib.import_module(name)


def test_java_only_calls_are_refused_by_name() -> None:
    from pyflink.common import Configuration, Types
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.java_gateway import get_gateway
    from pyflink.util.java_utils import get_j_env_configuration, to_jarray

    env = StreamExecutionEnvironment.get_execution_environment()
    for call, name in (
        (get_gateway, "get_gateway"),
        (lambda: get_j_env_configuration(None), "get_j_env_configuration"),
        (lambda: to_jarray(None, []), "to_jarray"),
        (lambda: env._j_stream_execution_environment.x, "StreamExecutionEnvironment._j_stream_execution_environment"),
        (lambda: env.from_collection([1])._j_data_stream, "DataStream._j_data_stream"),
        (lambda: Configuration()._j_configuration, "Configuration._j_configuration"),
        (lambda: Types.INT().get_java_type_info(), "BasicTypeInfo.get_java_type_info"),
    ):
        with pytest.raises(JavaOnlyError, match=name):
            call()
    assert not hasattr(env, "no_such_name")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = env.no_such_name


def test_uninstalled_names_lead_nowhere_again() -> None:
    importlib.import_module("pyflink.common")
    pyflink_names.uninstall()
    assert "pyflink.common" not in sys.modules
    assert find_spec("pyflink") is None, "PyFlink is not installed beside the tests"
    spec = importlib.import_module("rekindle.common").__spec__
    assert spec is not None
    assert spec.name == "rekindle.common"


def test_modules_under_pyflinks_names_are_not_shipped_as_the_users() -> None:
    importlib.import_module("pyflink.datastream")
    assert not [path for path in program_modules() if path.startswith("pyflink")]


def test_a_program_runs_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyflink_names.uninstall()
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom pyflink.common import Types\n"
        "if __name__ == '__main__':\n    print(sys.argv[1:], Types.LIST(Types.INT()))\n"
    )
    MainProgram(str(program), ("--input", "words")).run()
    assert capsys.readouterr().out == "['--input', 'words'] ListTypeInfo<Integer>\n"


def test_the_error_of_a_job_is_a_java_error_for_a_pyflink_program() -> None:
    from py4j.protocol import Py4JJavaError

    error = JobExecutionError("flat_map failed")
    error.__cause__ = ValueError("the cause")
    raised = error_for_program()(error)
    assert isinstance(raised, Py4JJavaError)
    assert isinstance(raised, JobExecutionError)
    assert str(raised) == "flat_map failed"
    assert raised.origin is None
    java_error: Any = raised
    assert java_error.java_exception.getMessage() == "flat_map failed"
    assert raised.__cause__ is error.__cause__
    assert as_java_error(raised) is raised
    pyflink_names.uninstall()
    assert error_for_program()(error) is error
