"""Errors of requests: a status, and a sentence in Flink's words where Flink has one."""

from __future__ import annotations

from typing import NoReturn


class RequestError(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def bad_path_value(name: str, value: str) -> NoReturn:
    """Refuse a part of the path."""
    raise RequestError(
        400, f'Bad request, could not parse parameters: Cannot resolve path parameter ({name}) from value "{value}".'
    )


def bad_query_value(name: str, value: str) -> NoReturn:
    """Refuse a parameter after the question mark."""
    raise RequestError(
        400, f'Bad request, could not parse parameters: Cannot resolve query parameter ({name}) from value "{value}".'
    )
