"""`EnvironmentSettings`: the mode and the configuration of a new table environment."""

from __future__ import annotations

from rekindle.common.configuration import Configuration

__all__ = ["EnvironmentSettings"]


class EnvironmentSettings:
    """Whether queries are for streams or for batches: for streams, `print` writes each change of a group's row.

    >>> EnvironmentSettings.in_streaming_mode().is_streaming_mode()
    True
    """

    def __init__(self, streaming: bool = True, configuration: Configuration | None = None) -> None:
        self._streaming = streaming
        self._configuration = configuration or Configuration()

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """Return a builder of settings."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Return settings for streams."""
        return EnvironmentSettings(True)

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Return settings for batches."""
        return EnvironmentSettings(False)

    def is_streaming_mode(self) -> bool:
        """Return whether the settings are for streams."""
        return self._streaming

    def get_configuration(self) -> Configuration:
        """Return the configuration."""
        return self._configuration

    class Builder:
        """Builds `EnvironmentSettings`."""

        def __init__(self) -> None:
            self._streaming = True
            self._configuration: Configuration | None = None

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            """Choose streams."""
            self._streaming = True
            return self

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            """Choose batches."""
            self._streaming = False
            return self

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Set the configuration."""
            self._configuration = config
            return self

        def build(self) -> EnvironmentSettings:
            """Return the settings."""
            return EnvironmentSettings(self._streaming, self._configuration)
