"""`TableConfig`: the configuration of a table environment."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from zoneinfo import available_timezones

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.errors import GraphError

__all__ = ["TableConfig"]

#: Flink writes an offset as GMT+02:00, Java also without GMT.
_OFFSET = re.compile(r"(?:GMT|UTC)?[+-]\d\d:\d\d")


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

    def set_local_timezone(self, timezone_id: str) -> TableConfig:
        """Set the zone of timestamps with a local time zone: a name such as Europe/Berlin, or an offset such as +02:00.

        >>> TableConfig(Configuration()).set_local_timezone("Asia/Shanghai").get_local_timezone()
        'Asia/Shanghai'
        """
        if not _OFFSET.fullmatch(timezone_id) and timezone_id not in available_timezones():
            raise GraphError(
                f"There is no time zone {timezone_id!r}: give a name such as Europe/Berlin or an offset such as +02:00."
            )
        self._configuration.set(config.LOCAL_TIME_ZONE, timezone_id)
        return self

    def get_local_timezone(self) -> str:
        """Return the zone of timestamps with a local time zone."""
        return self._configuration.get(config.LOCAL_TIME_ZONE) or str(datetime.now().astimezone().tzinfo)

    def get(self, key: str, default_value: str) -> str:
        """Return the value of a key."""
        return self._configuration.get_string(key, default_value)
