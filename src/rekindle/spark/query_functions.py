"""Python functions of queries in Spark's own Python workers: their values, and the files that they import."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkFiles, cloudpickle
from pyspark.sql import Row as SparkRow

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.types import Row, make_row
from rekindle.graph.python_files import added_files
from rekindle.table.udf import rows_of


@dataclass(frozen=True)
class ImportableFiles:
    """The files of `add_python_file`, which come to a worker with the function."""

    name: str
    files: Mapping[str, bytes]
    search: tuple[str, ...]

    @staticmethod
    def of(configuration: Configuration) -> ImportableFiles | None:
        """Return the files that the settings name; None if they name none."""
        named = configuration.get(config.PYTHON_FILES)
        files, search = added_files(named or ())
        if not files:
            return None
        content = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
        return ImportableFiles(f"rekindle-files-{content[:32]}", files, tuple(search))

    def place(self) -> None:
        """Make the files importable in this process. They lie in a directory that Spark removes with its context."""
        root = Path(SparkFiles.getRootDirectory()) / self.name
        if not root.is_dir():
            self._write(root)
        search = [str(root / name) for name in self.search]
        sys.path[:0] = [entry for entry in search if entry not in sys.path]

    def _write(self, root: Path) -> None:
        """Write all files or none: other workers of the executor write the same ones."""
        made = Path(tempfile.mkdtemp(dir=root.parent))
        for name, content in self.files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            os.rename(made, root)
        except OSError:
            shutil.rmtree(made)
            if not root.is_dir():
                raise


class WorkerFunction:
    """A function that is unpickled in a worker with its first call, when the files that it needs can be imported."""

    def __init__(self, function: Callable[..., Any], files: ImportableFiles | None) -> None:
        self._data: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
        self._files = files
        self._function: Callable[..., Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_function": None}

    def __call__(self, *arguments: Any) -> Any:
        if self._function is None:
            if self._files is not None:
                self._files.place()
            self._function = pickle.loads(self._data)
        return self._function(*arguments)


class ScalarCall:
    """Calls a function in Spark's Python worker, with the values that streams have."""

    def __init__(self, function: WorkerFunction) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return spark_value(self._function(*map(stream_value, arguments)))


class TableCall:
    """Calls a table function in Spark's Python worker: its rows are an array, which SQL's `inline` makes rows of."""

    def __init__(self, function: WorkerFunction) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> list[Any]:
        return [spark_value(row) for row in rows_of(self._function(*map(stream_value, arguments)))]


def stream_value(value: Any) -> Any:
    """Return a value of Spark's as streams have it."""
    if isinstance(value, SparkRow):
        return make_row(list(value.__fields__), list(map(stream_value, value)))
    if isinstance(value, list):
        return list(map(stream_value, value))
    if isinstance(value, dict):
        return {stream_value(key): stream_value(each) for key, each in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value


def spark_value(value: Any) -> Any:
    """Return a value of a stream as Spark takes it."""
    if isinstance(value, Row | tuple):
        return tuple(map(spark_value, value))
    if isinstance(value, list):
        return list(map(spark_value, value))
    if isinstance(value, dict):
        return {spark_value(key): spark_value(each) for key, each in value.items()}
    return value
