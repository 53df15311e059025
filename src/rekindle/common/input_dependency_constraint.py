"""`InputDependencyConstraint`, kept for programs that name it."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """When a task may start: with any of its inputs, or with all. Tasks start together here, so it changes nothing.

    >>> InputDependencyConstraint.ANY.name
    'ANY'
    """

    ANY = 0
    ALL = 1
