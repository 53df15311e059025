"""Whether a directory in a request lies inside the configured ones: a request cannot write elsewhere."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit


def is_inside(directory: str, roots: Iterable[str]) -> bool:
    """Whether a directory is one of the roots or below one, whatever links and dots are in its path.

    >>> is_inside("/data/sp/daily", ["/data/sp"]), is_inside("/data/sp/../x", ["/data/sp"])
    (True, False)
    >>> is_inside("s3://bucket/sp/a", ["s3://bucket/sp"]), is_inside("s3://bucket/sp2", ["s3://bucket/sp"])
    (True, False)
    """
    place = _place(directory)
    return place is not None and any(_is_below(place, root) for each in roots if (root := _place(each)) is not None)


def _place(directory: str) -> tuple[str, str, str] | None:
    """Scheme, host and absolute path of a directory; None: it is none."""
    if "\0" in directory or not directory.strip():
        return None
    if not directory.startswith("file:") and "://" not in directory:
        return "file", "", os.path.realpath(directory)
    try:
        parts = urlsplit(directory)
    except ValueError:
        return None
    scheme, path = parts.scheme.lower(), unquote(parts.path)
    if "\0" in path:
        return None
    if scheme == "file":
        return ("file", "", os.path.realpath(path)) if path.startswith("/") else None
    return scheme.replace("s3a", "s3"), parts.netloc, posixpath.normpath(f"/{path}")


def _is_below(place: tuple[str, str, str], root: tuple[str, str, str]) -> bool:
    return place[:2] == root[:2] and (place[2] == root[2] or place[2].startswith(f"{root[2].rstrip('/')}/"))
