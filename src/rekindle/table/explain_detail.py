"""`ExplainDetail`: the additions to the answer of `explain`. It has no effect: the plan is Spark's."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExplainDetail"]


class ExplainDetail(Enum):
    """The details of Flink's plans.

    >>> ExplainDetail.PLAN_ADVICE.name
    'PLAN_ADVICE'
    """

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3
