"""Predicates for retry strategies: PyFlink's functions, and Flink's `RetryPredicates`."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

__all__ = ["RetryPredicates", "empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: Sized | None) -> bool:
    """Return whether there is no result.

    >>> empty_result_predicate([]), empty_result_predicate([1])
    (True, False)
    """
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Return whether there is an error.

    >>> has_exception_predicate(ValueError())
    True
    """
    return error is not None


def exception_type_predicate(error: Any, expected_error_type: type[BaseException]) -> bool:
    """Return whether an error is of a type.

    >>> exception_type_predicate(ConnectionError(), OSError)
    True
    """
    return isinstance(error, expected_error_type)


class RetryPredicates:
    """Flink's names for these predicates.

    >>> RetryPredicates.create_exception_type_predicate(OSError)(ConnectionError())
    True
    """

    EMPTY_RESULT_PREDICATE = staticmethod(empty_result_predicate)
    HAS_EXCEPTION_PREDICATE = staticmethod(has_exception_predicate)

    @staticmethod
    def create_exception_type_predicate(expected_error_type: type[BaseException]) -> Callable[[Any], bool]:
        """Return a predicate for errors of one type."""
        return _ExceptionTypePredicate(expected_error_type)


class _ExceptionTypePredicate:
    """A predicate for errors of one type. Unlike a closure, plain pickle can serialize it."""

    def __init__(self, expected_error_type: type[BaseException]) -> None:
        self._expected = expected_error_type

    def __call__(self, error: Any) -> bool:
        return isinstance(error, self._expected)
