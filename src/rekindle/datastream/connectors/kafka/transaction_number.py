"""The number of a sink's transaction, which its committable carries and its token repeats.

Numbers of one transactional id rise: a later attempt has a higher number than an earlier one, and within an attempt
they count its checkpoints. A restore by hand begins a new timeline, whose numbers are apart (I14).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rekindle.datastream.connectors.sink_api import CommittableFile


def transactional_id(prefix: str, subtask: int, number: int) -> str:
    """Return the id of one of a subtask's producers.

    >>> transactional_id("orders", 3, 0)
    'orders-3-0'
    """
    return f"{prefix}-{subtask}-{number}"


def transactional_ids(prefix: str, subtask: int, pool_size: int) -> list[str]:
    """Return the ids of all of a subtask's producers.

    >>> transactional_ids("orders", 3, 2)
    ['orders-3-0', 'orders-3-1']
    """
    return [transactional_id(prefix, subtask, number) for number in range(pool_size)]


@dataclass(frozen=True)
class TransactionNumber:
    """Names one transaction for ever.

    >>> number = TransactionNumber("orders-0-1", 0, "00000001-0a1b2c3d", 2, 7)
    >>> number.key(), number.encoded()
    ('00000001-0a1b2c3d/orders-0-1', b'2.7')
    >>> number.is_covered_by({number.key(): (2, 8)}), number.is_covered_by({})
    (True, False)
    """

    transactional_id: str
    #: The subtask whose id it is, also after a change of parallelism: the token's partition.
    subtask: int
    timeline: str
    attempt: int
    count: int

    @property
    def prefix(self) -> str:
        """The transactional id prefix under which it was written: the program's may be another by now."""
        return self.transactional_id.rsplit("-", 2)[0]

    def key(self) -> str:
        """The key of its token."""
        return f"{self.timeline}/{self.transactional_id}"

    def encoded(self) -> bytes:
        """The value of its token."""
        return b"%d.%d" % (self.attempt, self.count)

    @staticmethod
    def decoded(value: bytes) -> tuple[int, int]:
        """Attempt and count of a token."""
        attempt, count = value.split(b".")
        return int(attempt), int(count)

    def is_covered_by(self, tokens: dict[str, tuple[int, int]]) -> bool:
        """Whether the tokens say that it was committed."""
        last = tokens.get(self.key())
        return last is not None and last >= (self.attempt, self.count)


@dataclass(frozen=True)
class PreparedTransaction:
    """The content of the sink's committable: the transaction, and the writer whose ids a restore must fence."""

    number: TransactionNumber
    records: int
    path: str
    #: Parallelism and pool size of the sink that wrote it: these ids may have open transactions.
    parallelism: int
    pool_size: int

    def committable(self) -> CommittableFile:
        """Return the committable."""
        metadata = {**asdict(self.number), "records": self.records}
        metadata |= {"parallelism": self.parallelism, "pool_size": self.pool_size}
        return CommittableFile(self.path, metadata=metadata)

    @staticmethod
    def of(committable: Any) -> PreparedTransaction:
        """Read a committable."""
        fields = dict(committable.metadata)
        rest = {name: fields.pop(name) for name in ("records", "parallelism", "pool_size")}
        return PreparedTransaction(TransactionNumber(**fields), path=committable.path, **rest)
