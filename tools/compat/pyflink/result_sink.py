"""The sink with which PyFlink's tests collect results: every record as Java would print it, and as it is."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

import cloudpickle

from rekindle.common.java_text import java_text
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.functions import RuntimeContext, SinkFunction


class DataStreamTestSinkFunction(SinkFunction):
    """Under the name that the tests use. Records go through files, because slots are other processes."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="rekindle-compat-")
        #: The type of the stream that it was added to.
        self.type_info: TypeInformation | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open this subtask's file."""
        self._text = java_text(self.type_info)
        self._file = open(Path(self._folder) / f"{runtime_context.get_index_of_this_subtask()}-{uuid.uuid4()}", "ab")

    def invoke(self, value: Any, context: Any) -> None:
        """Write a record: its text and itself."""
        pickled = pickle.dumps((self._text(value), cloudpickle.dumps(value)))
        self._file.write(len(pickled).to_bytes(4, "big") + pickled)
        self._file.flush()

    def close(self) -> None:
        """Close this subtask's file."""
        self._file.close()

    def get_results(self, is_python_object: bool = False, stringify: bool = True) -> list[Any]:
        """The records since the last call: as Java prints them, or as Python does."""
        found = self._read()
        if not is_python_object:
            return [text for text, _ in found]
        values = [pickle.loads(data) for _, data in found]
        return [str(value) for value in values] if stringify else values

    def _read(self) -> list[tuple[str, bytes]]:
        found = []
        for path in sorted(Path(self._folder).iterdir(), key=os.path.getmtime):
            data = path.read_bytes()
            while data:
                length = int.from_bytes(data[:4], "big")
                found.append(pickle.loads(data[4 : 4 + length]))
                data = data[4 + length :]
            path.unlink()
        return found

    def clear(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)
