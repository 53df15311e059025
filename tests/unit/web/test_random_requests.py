"""Random requests, made from the OpenAPI document: every answer is one that the document names, none is a 500."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance

from rekindle.web.openapi import openapi_document
from tests.support.recorded_jobs import JOB_ID
from tests.unit.web.conftest import Served, serve

TIMEOUT_S = 20
SCHEMA = schemathesis.openapi.from_dict(openapi_document())
OPERATIONS = [cast(Any, result).ok() for result in SCHEMA.get_all_operations()]
CHECKS = [not_a_server_error, status_code_conformance]


@pytest.fixture(scope="module")
def random_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that takes whatever is thrown at it."""
    found = serve(tmp_path_factory.mktemp("random"))
    yield found
    found.server.close()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method.upper()} {each.path}")
def test_no_request_breaks_the_server(random_server: Served, operation: Any) -> None:
    address = random_server.server.url.rstrip("/")

    @hypothesis.given(case=operation.as_strategy())
    @hypothesis.settings(max_examples=5, deadline=None)
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS, timeout=TIMEOUT_S, base_url=address)
        if "jobid" in (case.path_parameters or {}):  # the same for a job that is there
            case.path_parameters["jobid"] = JOB_ID
            case.call_and_validate(checks=CHECKS, timeout=TIMEOUT_S, base_url=address)

    ask()
