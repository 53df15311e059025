"""The files of the page: read once, known by name, so that no path of a request reaches the disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

#: The file that `/` shows; it names the others under `page/`.
INDEX = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: Only our own files, no script or style inside the page, no form that leaves it, and, where the browser knows trusted
#: types, no text that becomes HTML.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)


@dataclass(frozen=True)
class PageFile:
    """A file of the page."""

    content: bytes
    media_type: str


@cache
def page_files() -> dict[str, PageFile]:
    """The files by name.

    >>> page_files()["index.html"].media_type
    'text/html; charset=utf-8'
    """
    found = [each for each in files("rekindle.web").joinpath("page").iterdir() if _suffix(each.name) in _MEDIA_TYPES]
    return {each.name: PageFile(each.read_bytes(), _MEDIA_TYPES[_suffix(each.name)]) for each in found}


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]
