"""`Shipped`: a schema that travels to the slots without what a slot builds for itself."""

from __future__ import annotations

from typing import Any


class Shipped:
    """Keeps decoders, converters and connections out of pickles: each process builds its own on first use.

    >>> class Schema(Shipped):
    ...     pass
    >>> schema = Schema()
    >>> schema._built = object()
    >>> schema.__getstate__()
    {}
    """

    _built: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_built"}
