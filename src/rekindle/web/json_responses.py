"""Answers and errors as JSON, with Flink's content type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from starlette.responses import Response

CONTENT_TYPE = "application/json; charset=UTF-8"


def encoded(value: Any) -> bytes:
    """A value as JSON; text that UTF-8 cannot encode is escaped."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(value).encode("ascii")


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer."""
    from starlette.responses import Response

    return Response(encoded(value), status, dict(headers or {}), CONTENT_TYPE)


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error in Flink's form."""
    return json_response({"errors": [message]}, status, headers)
