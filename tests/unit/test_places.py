"""Places that users and requests name: one parser decides where they lead."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.open_store import absolute, open_store
from rekindle.errors import StoreError
from rekindle.places import is_url, parse_place
from rekindle.web.allowed_directories import is_inside

_WORDS = st.sampled_from(["a", "..", ".", "?", "#", "a?", "#b", "%2e%2e", "%2f", "%3F", "%25", "s p", "word=20count"])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/data/a?b#c", "/data/a?b#c"),
        ("/data/100%25", "/data/100%25"),
        ("file:/data/x", "/data/x"),
        ("file:////data/x", "/data/x"),
        ("file:///data/my%20orders", "/data/my orders"),
        ("file:/data/a?/../b", "/data/a?/../b"),
        ("/data/s3://x", "/data/s3://x"),
    ],
)
def test_a_place_of_this_machine(text: str, path: str) -> None:
    assert parse_place(text).path == path


def test_the_address_of_a_place_leads_to_it(tmp_path: Path) -> None:
    for name in ("a?b", "a#b", "100%", "50%25", "word=20count", "with space", "ü"):
        assert parse_place(parse_place(str(tmp_path / name)).url).path == str(tmp_path / name)


def test_dots_of_an_object_stores_address_are_gone_before_it_is_opened() -> None:
    assert parse_place("s3://bucket/sp/%2e%2e/other/").url == "s3://bucket/other"
    assert parse_place("hdfs://node:8020/sp/../x?user=me").url == "hdfs://node:8020/x?user=me"


def test_paths_and_addresses() -> None:
    assert [is_url(each) for each in ("file:/x", "s3a://b/x", "a/b", "c:d", "/x/s3://y")] == [True, True, *[False] * 3]
    assert absolute("file:/data/my%20orders/../x") == "/data/x"


@given(st.lists(_WORDS, max_size=6), st.sampled_from(["{}/", "file:{}/", "file://{}/", "file://localhost{}/"]))
def test_the_store_of_a_place_inside_is_inside(words: list[str], form: str) -> None:
    directory = form.format("/allowed/here") + "/".join(words)
    try:
        store = open_store(directory)
    except StoreError:
        assert not is_inside(directory, ["/allowed/here"])
        return
    assert isinstance(store, LocalStore)
    reached = Path(store.directory).resolve()
    assert is_inside(directory, ["file:/allowed/here"]) == reached.is_relative_to("/allowed/here")
