"""`JdbcExecutionOptions`: how rows are written, under PyFlink's names and with Flink's defaults."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.errors import GraphError


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """The size and interval of batches, and the number of retries of a failed write.

    >>> JdbcExecutionOptions.defaults()
    JdbcExecutionOptions(batch_interval_ms=0, batch_size=5000, max_retries=3)
    >>> JdbcExecutionOptions.builder().with_batch_size(200).with_batch_interval_ms(1000).build().get_batch_size()
    200
    """

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def get_batch_interval_ms(self) -> int:
        """Return the longest time that a row waits, in milliseconds; 0 is without a limit."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """Return the number of rows of a batch."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """Return how often a failed write is tried again."""
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Return Flink's defaults."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Return a builder with Flink's defaults."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Builds `JdbcExecutionOptions`."""

        def __init__(self) -> None:
            """Begin with Flink's defaults."""
            self._batch_interval_ms = JdbcExecutionOptions.batch_interval_ms
            self._batch_size = JdbcExecutionOptions.batch_size
            self._max_retries = JdbcExecutionOptions.max_retries

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Set the number of rows of a batch (5000)."""
            self._batch_size = _whole("with_batch_size", size, 1)
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set the longest time that a row waits for its batch, in milliseconds (0: for a checkpoint)."""
            self._batch_interval_ms = _whole("with_batch_interval_ms", interval_ms, 0)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set how often a write is tried again after a deadlock or a lost connection (3)."""
            self._max_retries = _whole("with_max_retries", max_retries, 0)
            return self

        def build(self) -> JdbcExecutionOptions:
            """Return the options."""
            return JdbcExecutionOptions(self._batch_interval_ms, self._batch_size, self._max_retries)


def _whole(method: str, value: int, least: int) -> int:
    if not isinstance(value, int) or value < least:
        raise GraphError(f"{method}() takes a whole number of {least} or more, not {value!r}.")
    return value
