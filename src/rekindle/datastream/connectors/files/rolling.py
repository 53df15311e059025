"""Rolling policies: they decide when a file is closed between checkpoints. A checkpoint closes every file.

Flink's default policy keeps a file open across checkpoints and truncates it after a failure. Here a file belongs to one
checkpoint, so that a surviving process of an older attempt can never write into a committed file.
"""

from __future__ import annotations

from rekindle.errors import GraphError


class RollingPolicy:
    """Decides whether a file is closed between checkpoints. For your own policy, extend it with `should_roll`.

    >>> RollingPolicy.default_rolling_policy(part_size=100).should_roll(size_bytes=100, age_ms=0, idle_ms=0)
    True
    """

    #: The size in bytes from which `should_roll` is asked. None: not by size.
    check_bytes: int | None = None
    #: Whether `should_roll` checks times, and so is asked again and again.
    checks_time = True

    def should_roll(self, size_bytes: int, age_ms: int, idle_ms: int) -> bool:
        """Return whether to close a file of this size, age, and time since its last record."""
        return False

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """Return a policy that closes a file at this size (bytes), age or time without records (ms)."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Return a policy that closes files only at checkpoints."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """Closes a file by size, age and time without records."""

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
        """Return whether one of the three limits is reached."""
        full = self.check_bytes is not None and size_bytes >= self.check_bytes
        return full or age_ms >= self._rollover_ms or idle_ms >= self._inactivity_ms


class OnCheckpointRollingPolicy(RollingPolicy):
    """Closes files only at checkpoints."""

    checks_time = False
