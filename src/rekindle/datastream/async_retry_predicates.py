"""Predicates for retry strategies, under PyFlink's names and under those of Flink's `RetryPredicates`."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

__all__ = ["RetryPredicates", "empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: Sized | None) -> bool:
    """Whether there is no result.

    >>> empty_result_predicate([]), empty_result_predicate([1])
    (True, False)
    """
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Whether there is an error at all.

    >>> has_exception_predicate(ValueError())
    True
    """
    return error is not None


def exception_type_predicate(error: Any, expected_error_type: type[BaseException]) -> bool:
    """Whether an error is of a type.

    >>> exception_type_predicate(ConnectionError(), OSError)
    True
    """
    return isinstance(error, expected_error_type)


class RetryPredicates:
    """Flink's names for the same.

    >>> RetryPredicates.create_exception_type_predicate(OSError)(ConnectionError())
    True
    """

    EMPTY_RESULT_PREDICATE = staticmethod(empty_result_predicate)
    HAS_EXCEPTION_PREDICATE = staticmethod(has_exception_predicate)

    @staticmethod
    def create_exception_type_predicate(expected_error_type: type[BaseException]) -> Callable[[Any], bool]:
        """The predicate for errors of one type."""
        return _OfType(expected_error_type)


class _OfType:
    """A predicate that can be shipped."""

    def __init__(self, expected_error_type: type[BaseException]) -> None:
        self._expected = expected_error_type

    def __call__(self, error: Any) -> bool:
        return isinstance(error, self._expected)
