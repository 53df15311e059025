"""Files that a program registers with `register_cached_file`, for its functions on every machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from rekindle.datastream.validation import check_name
from rekindle.errors import GraphError
from rekindle.places import is_url, parse_place

_NAME = re.compile(r"[\w][\w .-]*")


@dataclass(frozen=True)
class CachedFile:
    """A registered file or directory, and the name by which functions get it.

    >>> CachedFile("model", "s3://models/latest.bin", False).is_local
    False
    """

    name: str
    path: str  # a path on the driver's machine, or a URL that every slot can read
    executable: bool

    @property
    def is_local(self) -> bool:
        """Whether the driver reads the file and ships its content."""
        return not is_url(self.path)


def cached_file(file_path: str, name: str, executable: bool) -> CachedFile:
    """Check the arguments of `register_cached_file` and return the cached file."""
    check_name("register_cached_file(): file_path", file_path)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise GraphError(f"register_cached_file() takes a name of letters, digits, '.', '-' and '_', not {name!r}.")
    try:
        place = parse_place(file_path)
    except ValueError as error:
        raise GraphError(f"register_cached_file('{name}'): {error}.") from None
    if place.is_local:
        file_path = os.path.abspath(place.path)
        if not os.path.exists(file_path):
            raise GraphError(f"register_cached_file('{name}'): there is no '{file_path}'.")
    return CachedFile(name, file_path, bool(executable))
