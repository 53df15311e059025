"""Operations that requests start: how many there are, and how long their outcome is kept."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from rekindle.web import operations
from rekindle.web.operations import StartedOperations
from rekindle.web.request_errors import RequestError
from tests.support.waiting import wait_until

JOB = "0" * 32


def status(known: StartedOperations, request: str) -> Any:
    return known.status("savepoint", JOB, request, lambda location: {"location": location})


def test_there_are_at_most_so_many(monkeypatch):
    monkeypatch.setattr(operations, "_MOST", 3)
    known = StartedOperations(kept_s=300)
    requests = [known.start("savepoint", JOB, None, Future) for _ in range(3)]
    assert len(set(requests)) == 3
    with pytest.raises(RequestError, match="3 operations are under way") as refused:
        known.start("savepoint", JOB, None, Future)
    assert refused.value.status == 503
    assert known.start("savepoint", JOB, requests[0], Future) == requests[0]  # one that is known is no other one


def test_an_outcome_is_forgotten_after_its_time(monkeypatch):
    monkeypatch.setattr(operations, "_MOST", 1)
    known, outcome = StartedOperations(kept_s=0.05), Future[str]()
    request = known.start("savepoint", JOB, None, lambda: outcome)
    assert status(known, request) == {"status": {"id": "IN_PROGRESS"}, "operation": None}
    outcome.set_result("file:///savepoint-1")

    def is_forgotten() -> bool:
        try:
            return status(known, request)["operation"] != {"location": "file:///savepoint-1"}
        except RequestError as error:
            return error.status == 404

    wait_until(is_forgotten, "the outcome to be forgotten", 10)
    assert known.start("savepoint", JOB, None, Future) != request  # there is room again
