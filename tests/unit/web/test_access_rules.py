"""Who may ask: Host, Origin and token of a request."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.web.access_rules import AccessRules, Caller, Refusal, Welcome

OPEN = AccessRules(frozenset({"localhost", "driver.example"}), 8081)
GUARDED = AccessRules(frozenset({"localhost"}), 8081, "a-token-of-sixteen")


def status(rules: AccessRules, method: str = "GET", host: str = "localhost:8081", **caller: Any) -> int:
    verdict = rules.judge(Caller(method, host, **caller))
    return verdict.status if isinstance(verdict, Refusal) else 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost:8081", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1:8081", 200),
        ("10.1.2.3:8081", 200),  # an address cannot be rebound to another machine
        ("[::1]:8081", 200),
        ("driver.example:8081", 200),
        ("evil.example:8081", 400),
        ("localhost.evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("", 400),
        ("[::1", 400),
    ],
)
def test_the_host_is_an_address_or_a_known_name(host, expected):
    assert status(OPEN, host=host) == expected


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:8081", 200),
        ("https://localhost:8081", 200),
        ("http://localhost:8082", 403),  # another server of the same machine is another site
        ("http://evil.example", 403),
        ("null", 403),  # a frame without an origin, or a file
        ("http://localhost:8081/path", 403),
        ("http://[", 403),
    ],
)
def test_an_origin_is_the_servers_own(method, origin, expected):
    assert status(OPEN, method, origin=origin) == expected


@pytest.mark.parametrize(
    ("method", "site", "expected"),
    [("POST", "cross-site", 403), ("POST", "same-site", 403), ("POST", "same-origin", 200), ("GET", "cross-site", 200)],
)
def test_what_a_browser_says_of_another_site_counts_when_a_request_acts(method, site, expected):
    assert status(OPEN, method, fetch_site=site) == expected


@pytest.mark.parametrize(
    "caller",
    [
        {},
        {"authorization": "Bearer another-token-here"},
        {"authorization": "Basic a-token-of-sixteen"},
        {"authorization": "Bearer"},
        {"cookies": "rekindle-8082=a-token-of-sixteen"},
        {"cookies": "rekindle-8081=a-token-of-sixteem"},
        {"cookies": '"; broken'},
        {"link_token": "a-token-of-sixtee"},
        {"authorization": "Bearer ä-token-of-sixteen"},
    ],
)
def test_without_the_token_nothing_is_answered(caller):
    assert status(GUARDED, **caller) == 401


def test_the_token_comes_as_a_bearer_or_in_the_cookie():
    assert status(GUARDED, authorization="Bearer a-token-of-sixteen") == 200
    assert status(GUARDED, cookies="other=1; rekindle-8081=a-token-of-sixteen") == 200


def test_the_link_is_good_for_a_cookie_that_scripts_and_other_sites_do_not_get():
    welcome = GUARDED.judge(Caller("GET", "localhost:8081", link_token="a-token-of-sixteen"))
    assert isinstance(welcome, Welcome)
    assert welcome.cookie == "rekindle-8081=a-token-of-sixteen; HttpOnly; SameSite=Strict; Path=/"


def test_a_link_cannot_act():
    assert status(GUARDED, "POST", link_token="a-token-of-sixteen") == 401
