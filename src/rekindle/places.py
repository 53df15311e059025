"""Where a path or URL leads: the one parser of the places that settings, programs and requests name.

As in Flink, `file:/folder`, `file:///folder` and `file:////folder` are the same absolute folder. `?` and `#` belong to
the path of a `file:` address; elsewhere they are written %3F and %23, so that no two readers of an address disagree
about it.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)", re.DOTALL)
_FILE: Final = re.compile(r"file:", re.IGNORECASE)
#: Arrow takes settings of HDFS in the query of its address.
_WITH_QUERY: Final = ("hdfs", "viewfs")
#: Not escaped in addresses: the folder of a job has '=' for what its name has and a folder may not.
_SAFE: Final = "/=:@+,;!$&'()*~"


@dataclass(frozen=True)
class Place:
    """A directory or file: on this machine, or in the store of a scheme and host (its bucket or server)."""

    scheme: str
    host: str
    path: str  # decoded; as the user gave it on this machine, else normalised
    query: str = ""

    @property
    def is_local(self) -> bool:
        """Whether it is a path of this machine."""
        return self.scheme == "file"

    @property
    def url(self) -> str:
        """Its address.

        >>> parse_place("/data/word=20count/a?b").url, parse_place("s3://bucket/a/../b").url
        ('file:///data/word=20count/a%3Fb', 's3://bucket/b')
        """
        return f"{self.scheme}://{self.host}{quote(self.path, safe=_SAFE)}{self.query and f'?{self.query}'}"

    def below(self, root: Place) -> bool:
        """Whether it is the root or below it, whatever links and dots are in the paths."""
        own, other = self._resolved(), root._resolved()
        same = own[:2] == other[:2]
        return same and (own[2] == other[2] or own[2].startswith(f"{other[2].rstrip('/')}/"))

    def _resolved(self) -> tuple[str, str, str]:
        scheme = "s3" if self.scheme == "s3a" else self.scheme
        return scheme, self.host, os.path.realpath(self.path) if self.is_local else self.path or "/"


def parse_place(text: str) -> Place:
    """Parse a path or an address; ValueError says what cannot be used.

    >>> parse_place("file:/data/my%20orders")
    Place(scheme='file', host='', path='/data/my orders', query='')
    >>> parse_place("s3://bucket/orders").host
    'bucket'
    """
    if not text.strip():
        raise ValueError("An empty text names no directory: name a path or a URL")
    if "\0" in text or "%00" in text:
        raise ValueError(f"{text!r} has a null byte in it")
    if _FILE.match(text):
        return Place("file", "", _file_path(text))
    if not is_url(text):
        return Place("file", "", _with_one_slash(os.path.join(os.getcwd(), text)))
    scheme, _, rest = text.partition(":")
    scheme = scheme.lower()
    if not rest.startswith("//"):
        raise ValueError(f"'{text}' has one slash after '{scheme}:' where a host follows two: write {scheme}:/{rest}")
    host, slash, path = rest[2:].partition("/")
    query = ""
    if scheme in _WITH_QUERY:
        path, _, query = path.partition("?")
    if set(f"{host}{path}{query}") & {"?", "#"}:
        raise ValueError(f"'{text}' has a '?' or '#' in it: write %3F or %23 where a name has one")
    return Place(scheme, host, _normalised(unquote(path)) if slash else "", query)


def is_url(text: str) -> bool:
    """Whether a place is an address, not a path.

    >>> is_url("s3://bucket/savepoint-0a1b2c-1d2e3f"), is_url("file:/folder"), is_url("00000001-0a1b2c3d/chk-7")
    (True, True, False)
    """
    return _FILE.match(text) is not None or _ADDRESS.match(text) is not None


def _file_path(text: str) -> str:
    rest = text[len("file:") :]
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise ValueError(
                f"'{text}' names a host, '{host}': a directory of this machine is written file:///directory"
            )
        rest = f"/{rest}"
    if not rest.startswith("/"):
        raise ValueError(f"'{text}' names no absolute directory: write file:///directory")
    path = unquote(rest)
    if not path.strip("/"):
        raise ValueError(f"'{text}' names no directory: write file:///directory")
    return _with_one_slash(path)


def _with_one_slash(path: str) -> str:
    """An absolute path as Linux reads it: Hadoop, and so Spark, would take the name after two slashes for a host."""
    return "/" + path.lstrip("/")


def _normalised(path: str) -> str:
    """The path of an object store or server without dots: the libraries that open it would resolve them too."""
    return posixpath.normpath("/" + path.lstrip("/")).rstrip("/")
