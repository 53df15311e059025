"""The forms by which programs with random or endless input are compared tell a right output from a wrong one."""

from __future__ import annotations

import pytest

from tools.compat.pyflink.forms import of_answers, of_changes, of_counts


def test_counts_of_words_have_one_form() -> None:
    form = of_counts(["Hello.", "(to,1)", "(be,1)", "(to,2)"])
    assert form == ["Hello.", "(word,count): each word from 1 on, by 1"]
    assert of_counts(["Hello.", "(or,1)"]) == form
    for wrong in (["(to,2)"], ["(to,1)", "(to,3)"], ["(to,1)", "(to, 2)"], ["('to', 1)"]):
        assert of_counts(["Hello.", *wrong]) != form


def test_changes_of_words_have_one_form() -> None:
    form = of_changes(["+I[to, 1]", "+I[be, 1]", "-U[to, 1]", "+U[to, 2]", "-U[to, 2]"])
    assert form == ["kind[word, count]: each word +I 1, -U 1, +U 2, -U 2 and so on"]
    for wrong in (["+I[to, 1]", "+U[to, 2]"], ["+I[to, 2]"], ["+I[to,1]"], ["+I[to, 1]", "+I[to, 2]"]):
        assert of_changes(wrong) != form


@pytest.mark.parametrize(
    "other", ['{"id": "7", "text": "0f"}', '{"id": 7, "text": "0f0"}', '{"id": 7}', '{"id": 7, "text": null}']
)
def test_answers_have_the_form_of_their_fields(other: str) -> None:
    form = of_answers(['{"id": 7, "text": "0f"}', '{"id": -1, "text": "1a"}'])
    assert form == ["id: int", "text: 2 hexadecimal digits"]
    assert of_answers([other]) != form
    assert of_answers(['{"id": 7, "text": "0f"}', '{"id": 8, "text": null}']) == form
