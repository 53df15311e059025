"""docs/guide/pyflink-names.md: every public name of PyFlink, with what it is here."""

from __future__ import annotations

import json

from tools.compat.pyflink.environment import PYFLINK_VERSION
from tools.compat.pyflink.names_page import page_of
from tools.compat.pyflink_names import NAMES, PAGE


def test_the_page_says_what_is_here() -> None:
    listed = json.loads(NAMES.read_text())
    assert listed["version"] == PYFLINK_VERSION
    assert sum(map(len, listed["modules"].values())) > 250, "the list of PyFlink's names is not whole"
    expected = page_of(listed["modules"], PYFLINK_VERSION)
    assert PAGE.read_text() == expected, "write the page again: python -m tools.compat pyflink_names --page"
