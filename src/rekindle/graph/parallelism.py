"""How many key groups an operator has when nobody says: Flink's formula."""

from __future__ import annotations

#: Flink's bounds: few key groups make rescaling uneven, many cost in every snapshot.
LOWER_BOUND, UPPER_BOUND = 128, 1 << 15


def default_max_parallelism(parallelism: int) -> int:
    """One and a half times the parallelism, as a power of two, between 128 and 32768.

    >>> default_max_parallelism(2), default_max_parallelism(100), default_max_parallelism(40_000)
    (128, 256, 32768)
    """
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), LOWER_BOUND), UPPER_BOUND)
