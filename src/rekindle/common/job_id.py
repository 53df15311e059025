"""`JobID`: the id of a job."""

from __future__ import annotations

from rekindle.ids import JobIdHex, new_job_id, parse_job_id

__all__ = ["JobID"]


class JobID:
    """Identifies a job: 32 hexadecimal digits.

    >>> str(JobID("0123456789abcdef0123456789abcdef"))
    '0123456789abcdef0123456789abcdef'
    """

    def __init__(self, hex_digits: str | None = None) -> None:
        self._hex = new_job_id() if hex_digits is None else parse_job_id(hex_digits)

    def to_hex_string(self) -> JobIdHex:
        """The 32 digits."""
        return self._hex

    def __str__(self) -> str:
        return self._hex

    def __repr__(self) -> str:
        return f"JobID({self._hex!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobID) and self._hex == other._hex

    def __hash__(self) -> int:
        return hash(self._hex)
