"""Paths of files and directories that users give: local paths or file:// URLs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rekindle.errors import GraphError
from rekindle.places import parse_place


def local_path(where: str, path: Any) -> str:
    """Return the absolute local path of a path or file:// URL. Refuses anything else.

    >>> local_path("FileSink", "file:///data/my%20orders/")
    '/data/my orders'
    """
    if isinstance(path, Path):
        path = str(path)
    if not isinstance(path, str) or not path:
        raise GraphError(f"{where} takes the path of a local file or directory, not {path!r}.")
    try:
        place = parse_place(path)
    except ValueError as error:
        raise GraphError(f"{where}: {error}.") from None
    if not place.is_local:
        raise GraphError(
            f"{where} reads and writes local directories (also file://), not '{path}': mount the {place.scheme} "
            "storage as a directory that every host sees, or go through Spark with from_dataframe() and to_dataframe()."
        )
    return os.path.abspath(place.path)


def is_hidden(name: str) -> bool:
    """Return whether readers skip a file or directory of this name, as Flink and Spark do.

    >>> is_hidden(".part-0.inprogress"), is_hidden("_SUCCESS"), is_hidden("part-0")
    (True, True, False)
    """
    return name.startswith((".", "_"))
