"""When a file is closed and another one begun. At a checkpoint every file is, whatever the policy says.

Flink's default policy lets a file stay open over checkpoints and cuts it back after a failure. Here a file belongs to
one checkpoint: so a process of an older attempt that is still alive can never write into a file that counts.
"""

from __future__ import annotations

from rekindle.errors import GraphError


class RollingPolicy:
    """Between two checkpoints: whether a file is full. Extend it with `should_roll` for a policy of your own.

    >>> RollingPolicy.default_rolling_policy(part_size=100).should_roll(size_bytes=100, age_ms=0, idle_ms=0)
    True
    """

    #: How many bytes a file may have before `should_roll` is asked.
    check_bytes: int | None = None
    #: Whether `should_roll` looks at times.
    checks_time = True

    def should_roll(self, size_bytes: int, age_ms: int, idle_ms: int) -> bool:
        """Whether a file of this size, begun and last written so long ago, is closed now."""
        return False

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """A file is closed at this size, this long after it was begun, and this long after its last record."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Only checkpoints close files."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """By size and time."""

    def __init__(self, part_size: int, rollover_interval: int, inactivity_interval: int) -> None:
        limits = {
            "part_size": part_size,
            "rollover_interval": rollover_interval,
            "inactivity_interval": inactivity_interval,
        }
        for name, value in limits.items():
            if not isinstance(value, int) or value < 1:
                raise GraphError(f"default_rolling_policy() takes a {name} of 1 or more, not {value!r}.")
        self.check_bytes = part_size
        self._rollover_ms = rollover_interval
        self._inactivity_ms = inactivity_interval

    def should_roll(self, size_bytes: int, age_ms: int, idle_ms: int) -> bool:
        """Whether one of the three is reached."""
        full = self.check_bytes is not None and size_bytes >= self.check_bytes
        return full or age_ms >= self._rollover_ms or idle_ms >= self._inactivity_ms


class OnCheckpointRollingPolicy(RollingPolicy):
    """Only at checkpoints."""

    checks_time = False
