"""The way of a request: guard, route, body, answer. Imported when the first client comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from rekindle.web.access_rules import AccessRules
from rekindle.web.asked import Asked
from rekindle.web.endpoints import ENDPOINTS, Endpoint, PlainText
from rekindle.web.event_stream import EventStreams
from rekindle.web.guard import Guard
from rekindle.web.json_responses import error_response, json_response
from rekindle.web.openapi import openapi_document
from rekindle.web.page_files import CONTENT_SECURITY_POLICY, INDEX, page_files
from rekindle.web.probe_answers import PROBES
from rekindle.web.prometheus_text import CONTENT_TYPE, prometheus_text
from rekindle.web.request_errors import RequestError
from rekindle.web.rest_settings import ReporterOptions
from rekindle.web.served_jobs import ServedJobs

_LOG = logging.getLogger("rekindle.web")
_LARGEST_BODY = 64 * 1024
_BODY_DEADLINE_S = 10.0
#: Every path is there with and without the version.
_VERSIONS = ("", "/v1")
Answering = Callable[[Request], Awaitable[Response]]


def rest_app(asked: Asked, rules: AccessRules, streams: EventStreams) -> ASGIApp:
    """The REST API and the page. `asked` has what all requests share."""
    routes = [
        Route(version + endpoint.path, _answering(endpoint, asked), methods=[endpoint.method])
        for endpoint in ENDPOINTS
        for version in _VERSIONS
    ]
    for version in _VERSIONS:
        routes += [
            Route(f"{version}/events", _events(streams, asked.jobs), methods=["GET"]),
            Route(f"{version}/metrics", _metrics(asked.jobs, ReporterOptions()), methods=["GET"]),
            Route(f"{version}/openapi.json", _document, methods=["GET"]),
        ]
    routes += [Route("/", _page, methods=["GET"]), Route("/page/{pagefile}", _page, methods=["GET"])]
    return Guard(_application(routes), rules, PROBES)


def metrics_app(jobs: ServedJobs, options: ReporterOptions, rules: AccessRules) -> ASGIApp:
    """The metrics alone, under every path, as Flink's PrometheusReporter serves them on a port of its own."""
    return Guard(_application([Route("/{path:path}", _metrics(jobs, options), methods=["GET"])]), rules)


def _application(routes: list[Route]) -> Starlette:
    handlers = {HTTPException: _http_error, Exception: _unexpected}
    return Starlette(routes=routes, exception_handlers=handlers)


def _answering(endpoint: Endpoint, shared: Asked) -> Answering:
    async def answer(request: Request) -> Response:
        body = await _body(request) if endpoint.method != "GET" else b""
        asked = replace(shared, path=request.path_params, query=dict(request.query_params), body=body)
        try:
            result = await run_in_threadpool(endpoint.handler, asked) if endpoint.waits else endpoint.handler(asked)
        except RequestError as error:
            return error_response(error.status, str(error))
        return _response(result, endpoint.status)

    return answer


def _response(result: Any, status: int) -> Response:
    if isinstance(result, PlainText):
        return Response(result.text.encode("utf-8", "backslashreplace"), status, media_type=result.content_type)
    return json_response(result, status)


async def _body(request: Request) -> bytes:
    """The body, if it is small and comes in time: a slow client must not stay."""
    data = bytearray()

    async def read() -> None:
        async for part in request.stream():
            data.extend(part)
            if len(data) > _LARGEST_BODY:
                raise HTTPException(413, f"The body of a request has at most {_LARGEST_BODY} bytes.")

    try:
        await asyncio.wait_for(read(), _BODY_DEADLINE_S)
    except TimeoutError:
        raise HTTPException(408, f"The body of the request did not come within {_BODY_DEADLINE_S:.0f} s.") from None
    return bytes(data)


def _events(streams: EventStreams, jobs: ServedJobs) -> Answering:
    async def answer(request: Request) -> Response:
        job_id = request.query_params.get("job")
        if job_id is not None and jobs.view(job_id) is None:
            return error_response(404, f"Job {job_id} not found")
        if not streams.has_room():
            return error_response(503, "Too many pages listen to events already.")
        return StreamingResponse(streams.events(job_id), media_type="text/event-stream")

    return answer


def _metrics(jobs: ServedJobs, options: ReporterOptions) -> Answering:
    async def answer(request: Request) -> Response:
        # Thousands of values take a while.
        text = await run_in_threadpool(prometheus_text, jobs.views(), options)
        return Response(text, media_type=CONTENT_TYPE)

    return answer


async def _document(request: Request) -> Response:
    return json_response(openapi_document())


async def _page(request: Request) -> Response:
    found = page_files().get(request.path_params.get("pagefile", INDEX))
    if found is None:
        raise HTTPException(404)
    headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
    return Response(found.content, headers=headers, media_type=found.media_type)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:  # Flink knows a path by its method, too
        return error_response(404, f"Not found: {request.url.path}")
    if error.status_code == 404:
        return error_response(404, f"Unable to load requested file {request.url.path}.")
    return error_response(error.status_code, error.detail)


async def _unexpected(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, "Internal server error.")
