"""The files of the page: served as they are, nothing beside them, under a strict policy."""

from __future__ import annotations

import re

import pytest

from rekindle.web.openapi import openapi_document
from rekindle.web.page_files import INDEX, page_files
from tests.support.rest_client import RestClient
from tests.unit.web.conftest import TOKEN, Served

FILES = sorted(page_files())
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def test_the_page_is_at_the_root_with_a_strict_policy(served: Served):
    answer = served.client.ask("GET", "/")
    assert answer.status == 200
    assert answer.content == page_files()[INDEX].content
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_served_with_its_type(served: Served, name: str):
    answer = served.client.ask("GET", f"/page/{name}")
    assert answer.status == 200
    assert answer.content == page_files()[name].content
    assert answer.headers["content-type"].startswith(KINDS[name.rpartition(".")[2]])
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/page/nope.js", "/page/../guard.py", "/page/..%2fguard.py", "/page/%2e%2e/guard.py", "/page/", "/page"]
)
def test_nothing_else_of_the_disk_is_served(served: Served, path: str):
    assert served.client.ask("GET", path).status in (404, 307)
    assert b"class Guard" not in served.client.ask("GET", path).content


def test_a_page_without_the_token_is_refused_and_with_the_cookie_answered(guarded: Served):
    assert guarded.client.ask("GET", "/").status == 401
    cookie = guarded.client.ask("GET", f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
    for path in ("/", *(f"/page/{name}" for name in FILES)):
        assert guarded.client.ask("GET", path).status == 401
        assert guarded.client.ask("GET", path, cookie=cookie).status == 200


def test_a_foreign_name_does_not_get_the_page(served: Served):
    client = RestClient(served.server.url, Host="evil.example")
    assert client.ask("GET", "/").status == 400
    assert served.client.ask("GET", "/page/main.js", origin="http://evil.example").status == 403


@pytest.mark.parametrize("name", FILES)
def test_no_file_names_another_place_or_makes_html_of_text(name: str):
    text = page_files()[name].content.decode()
    places = set(re.findall(r"https?://[\w.]+", text)) - {"http://www.w3.org"}  # the name of SVG
    assert not places
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    if name == INDEX:
        assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", text)
        named = set(re.findall(r'(?:src|href)="page/([^"]+)"', text))
        assert named <= set(FILES)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_each_import_is_there(name: str):
    text = page_files()[name].content.decode()
    for file, names in re.findall(r'import (?:\* as \w+|\{([^}]*)\}) from "\./([^"]+)"', text):
        assert names in FILES
        exported = page_files()[names].content.decode()
        for each in filter(None, (part.strip() for part in file.split(","))):
            assert re.search(rf"export (?:async )?(?:const|function|class) {each}\b", exported), each


def test_the_document_for_machines_has_the_page():
    paths = openapi_document()["paths"]
    assert "/" in paths
    assert paths["/page/{pagefile}"]["get"]["parameters"][0]["schema"]["enum"] == FILES
