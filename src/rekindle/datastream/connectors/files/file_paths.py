"""Paths of files and directories that users give: local paths or file:// URLs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from rekindle.errors import GraphError


def local_path(where: str, path: Any) -> str:
    """Return the absolute local path of a path or file:// URL. Refuses anything else.

    >>> local_path("FileSink", "file:///data/my%20orders/")
    '/data/my orders'
    """
    if isinstance(path, Path):
        path = str(path)
    if not isinstance(path, str) or not path:
        raise GraphError(f"{where} takes the path of a local file or directory, not {path!r}.")
    if path.startswith("file:/"):
        url = urlsplit(path)
        if url.netloc not in ("", "localhost"):
            raise GraphError(f"{where}: '{path}' names the host '{url.netloc}'; write file:///path, without a host.")
        path = unquote(url.path)
    elif "://" in path:
        scheme = path.partition("://")[0]
        raise GraphError(
            f"{where} reads and writes local directories (also file://), not '{path}': mount the {scheme} storage as "
            "a directory that every host sees, or go through Spark with from_dataframe() and to_dataframe()."
        )
    return os.path.abspath(str(path))


def is_hidden(name: str) -> bool:
    """Return whether readers skip a file or directory of this name, as Flink and Spark do.

    >>> is_hidden(".part-0.inprogress"), is_hidden("_SUCCESS"), is_hidden("part-0")
    (True, True, False)
    """
    return name.startswith((".", "_"))
