"""The REST API for machines: an OpenAPI 3.1 document, made from the table of endpoints."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from rekindle.web.endpoints import ENDPOINTS, Endpoint
from rekindle.web.flink_values import Json
from rekindle.web.page_files import page_files

_HEX = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_INDEX = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_PATH_VALUES: dict[str, Json] = {
    "jobid": _HEX,
    "applicationid": _HEX,
    "vertexid": _HEX,
    "triggerid": _HEX,
    "checkpointid": {"type": "integer", "minimum": 1, "maximum": 2**53},
    "subtaskindex": _INDEX,
    "taskmanagerid": {"type": "string", "minLength": 1},
    "filename": {"type": "string", "enum": ["taskmanager.log", "taskmanager.out"]},
}
_QUERY_VALUES: dict[str, Json] = {
    "get": {"type": "string", "description": "Names of metrics, with commas between them; without it, all names."},
    "agg": {"type": "string", "description": "min, max, avg, sum, skew, with commas between them."},
    "jobs": {"type": "string", "description": "Ids of jobs, with commas between them."},
    "subtasks": {"type": "string", "description": "Indexes and ranges: 0,2-4."},
    "mode": {"type": "string", "enum": ["cancel"]},
    "maxExceptions": _INDEX,
    "most": _INDEX,
}
_ERRORS = {
    "description": "Why it is not answered.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"errors": {"type": "array", "items": {"type": "string"}}},
                "required": ["errors"],
            }
        }
    },
}
_ERROR_STATUSES = ("400", "401", "403", "404", "408", "409", "413", "503")


@cache
def openapi_document() -> Json:
    """The document."""
    paths: dict[str, Json] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(f"/v1{endpoint.path}", {})[endpoint.method.lower()] = _operation(endpoint)
    paths |= {"/": {"get": _page("The page.")}, "/page/{pagefile}": {"get": _page("A file of the page.", _page_file())}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Rekindle", "version": version("rekindle"), "description": "Flink's REST API, and more."},
        "paths": paths,
    }


def _page(summary: str, *parameters: Json) -> Json:
    responses: Json = {"200": {"description": summary}, **dict.fromkeys(_ERROR_STATUSES, _ERRORS)}
    return {"summary": summary, "parameters": list(parameters), "responses": responses}


def _page_file() -> Json:
    schema = {"type": "string", "enum": sorted(page_files())}
    return {"name": "pagefile", "in": "path", "required": True, "schema": schema}


def _operation(endpoint: Endpoint) -> Json:
    operation: Json = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{re.sub('[^a-zA-Z]+', '_', endpoint.path)}".rstrip("_"),
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": {
            str(endpoint.status): {"description": "The answer."},
            **dict.fromkeys(_ERROR_STATUSES, _ERRORS),
        },
    }
    if endpoint.body is not None:
        schema = _schema(endpoint.body)
        operation["requestBody"] = {"required": False, "content": {"application/json": {"schema": schema}}}
    return operation


def _path_parameters(endpoint: Endpoint) -> list[Json]:
    names = re.findall(r"{(\w+)}", endpoint.path)
    return [{"name": name, "in": "path", "required": True, "schema": _PATH_VALUES[name]} for name in names]


def _query_parameters(endpoint: Endpoint) -> list[Json]:
    return [{"name": name, "in": "query", "required": False, "schema": _QUERY_VALUES[name]} for name in endpoint.query]


def _schema(body: type[Any]) -> Json:
    _, components = msgspec.json.schema_components([body], ref_template="#/$defs/{name}")
    schema: Json = next(iter(components.values()))
    return schema
