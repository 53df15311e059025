"""Whether a directory in a request lies inside the configured ones: a request cannot write elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from rekindle.places import Place, parse_place


def is_inside(directory: str, roots: Iterable[str]) -> bool:
    """Whether a directory is one of the roots or below one, whatever links and dots are in its path.

    >>> is_inside("/data/sp/daily", ["/data/sp"]), is_inside("/data/sp/../x", ["/data/sp"])
    (True, False)
    >>> is_inside("s3://bucket/sp/a", ["s3://bucket/sp"]), is_inside("s3://bucket/sp2", ["s3://bucket/sp"])
    (True, False)
    """
    place = _place(directory)
    return place is not None and any(place.below(root) for each in roots if (root := _place(each)) is not None)


def _place(directory: str) -> Place | None:
    try:
        return parse_place(directory)
    except ValueError:
        return None
