"""The PyFlink version whose names are here: programs print or compare it."""

from __future__ import annotations

#: The version of the `apache-flink` package that the names were compared with.
__version__ = "2.3.0"
