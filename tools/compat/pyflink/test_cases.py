"""The base classes of PyFlink's tests, without its mini cluster."""

from __future__ import annotations

import shutil
import tempfile
import unittest
from typing import Any

from rekindle.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from tools.compat.pyflink.java_stand_ins import NotPortableError


class PyFlinkTestCase(unittest.TestCase):
    """A test with a temporary folder."""

    tempdir: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.tempdir = tempfile.mkdtemp()

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.tempdir, ignore_errors=True)

    @classmethod
    def assert_equals(cls, actual: Any, expected: Any) -> None:
        """Compare two lists in any order."""
        assert sorted(actual) == sorted(expected), f"{actual} is not {expected}"


class PyFlinkITTestCase(PyFlinkTestCase):
    """A test that runs jobs: each one in an environment of its own, as after a job nothing is left in PyFlink's."""

    mode: RuntimeExecutionMode | None = None

    def setUp(self) -> None:
        self.env = StreamExecutionEnvironment.get_execution_environment()
        self.env.set_parallelism(2)
        if self.mode is not None:
            self.env.set_runtime_mode(self.mode)


class PyFlinkStreamingTestCase(PyFlinkITTestCase):
    """A test of streaming jobs."""

    mode = RuntimeExecutionMode.STREAMING


class PyFlinkBatchTestCase(PyFlinkITTestCase):
    """A test of batch jobs."""

    mode = RuntimeExecutionMode.BATCH


class PyFlinkUTTestCase(PyFlinkTestCase):
    """A test of the Table API."""

    def setUp(self) -> None:
        self.env = StreamExecutionEnvironment.get_execution_environment()
        self.env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
        self.env.set_parallelism(2)


class PythonAPICompletenessTestCase:
    """A comparison of Python's methods with Java's: there are no Java classes here."""

    def test_completeness(self) -> None:
        """Not portable."""
        raise NotPortableError("it compares with Java's methods")


def to_java_data_structure(value: Any) -> Any:
    """A value of the formats' tests in Java: here it stays as it is."""
    return value


def exec_insert_table(table: Any, table_path: str) -> Any:
    """Insert a table into another, and wait."""
    return table.execute_insert(table_path).get_job_client().get_job_execution_result().result()
