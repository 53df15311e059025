"""Settings from outside a program: those with which the command line runs it. As in Flink, the program's own win."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rekindle.common.configuration import Configuration
from rekindle.config import OPTIONS

_submitted: Configuration | None = None


@contextmanager
def submitted_with(configuration: Configuration) -> Iterator[None]:
    """Environments that are made inside the block begin with these settings."""
    global _submitted
    before, _submitted = _submitted, configuration
    try:
        yield
    finally:
        _submitted = before


def with_submitted(own: Configuration | None) -> Configuration | None:
    """The settings of a new environment: those from outside, and over them the program's own.

    >>> with submitted_with(Configuration.from_dict({"parallelism.default": "2", "pipeline.name": "orders"})):
    ...     print(with_submitted(Configuration.from_dict({"parallelism.default": "3"})))
    {parallelism.default=3, pipeline.name=orders}
    """
    if _submitted is None:
        return own
    merged = Configuration(_submitted)
    for key in own.key_set() if own is not None else ():
        option = OPTIONS.get(key)
        # An older spelling of the key must not stay beside the program's.
        for spelling in (option.key, *option.deprecated_keys) if option is not None else ():
            if spelling != key:
                merged.remove_config(spelling)
    return merged if own is None else merged.add_all(own)
