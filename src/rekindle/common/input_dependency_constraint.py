"""`InputDependencyConstraint`, kept for programs that name it."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """Whether a task may start with any of its inputs or with all. No effect here: all tasks start together.

    >>> InputDependencyConstraint.ANY.name
    'ANY'
    """

    ANY = 0
    ALL = 1
