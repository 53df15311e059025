"""`TableConfig`: the configuration of a table environment."""

from __future__ import annotations

from typing import Any

from rekindle.common.configuration import Configuration
from rekindle.errors import GraphError

__all__ = ["TableConfig"]


class TableConfig:
    """The configuration of a table environment, which is that of its stream environment."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def get_configuration(self) -> Configuration:
        """Return the configuration."""
        return self._configuration

    def set(self, key: Any, value: Any) -> TableConfig:
        """Set a key. Keys of Flink's planner (`table.…`) have no effect: Spark plans the queries."""
        if not isinstance(key, str):
            raise GraphError(f"TableConfig.set() takes the name of a key, not {key!r}.")
        self._configuration.set_string(key, str(value))
        return self

    def get(self, key: str, default_value: str) -> str:
        """Return the value of a key."""
        return self._configuration.get_string(key, default_value)
