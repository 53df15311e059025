"""Operator ids: from the uid, else from the place in the topology."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import GraphError
from rekindle.graph.build import build_plan
from rekindle.graph.uid import uid_hash
from tests.support.environments import environment


def ids(write: Callable[[StreamExecutionEnvironment], object]) -> dict[str, str]:
    """Operator ids by name of a program."""
    env = environment(2)
    write(env)
    return {node.name: node.uid for node in build_plan(env._program("job")).nodes}


def test_an_id_is_32_hexadecimal_digits() -> None:
    for uid in ids(lambda env: env.from_sequence(1, 9).map(str).print()).values():
        assert len(uid) == 32
        assert int(uid, 16) >= 0


def test_a_uid_decides_whatever_surrounds_it() -> None:
    first = ids(lambda env: env.from_sequence(1, 9).map(str).name("a").uid("u"))
    second = ids(lambda env: env.from_collection([1]).filter(bool).flat_map(str).map(str).name("b").uid("u"))
    assert first["a"] == second["b"] == uid_hash("uid", "u")


def test_a_uid_hash_is_taken_as_it_is() -> None:
    given = "0123456789abcdef0123456789ABCDEF"
    found = ids(lambda env: env.from_sequence(1, 9).map(str).name("a").uid("u").set_uid_hash(given))
    assert found["a"] == given.lower()


def test_names_parallelism_and_partitioning_do_not_count() -> None:
    first = ids(lambda env: env.from_sequence(1, 9).map(str).name("a"))
    second = ids(lambda env: env.from_sequence(1, 9).rebalance().map(repr).name("b").set_parallelism(1))
    assert first["a"] == second["b"]


def test_the_same_program_has_the_same_ids() -> None:
    def write(env: StreamExecutionEnvironment) -> object:
        return env.from_sequence(1, 9).map(str).key_by(len).reduce(max).print()

    assert ids(write) == ids(write)


def test_operators_in_one_place_differ() -> None:
    def write(env: StreamExecutionEnvironment) -> None:
        stream = env.from_sequence(1, 9)
        stream.map(str).name("a")
        stream.map(str).name("b")
        env.from_sequence(1, 9).map(str).name("c")

    found = ids(write)
    assert len({found["a"], found["b"], found["c"]}) == 3


def test_kind_and_inputs_count() -> None:
    by_kind = {
        ids(lambda env: env.from_sequence(1, 9).map(str).name("x"))["x"],
        ids(lambda env: env.from_sequence(1, 9).filter(bool).name("x"))["x"],
        ids(lambda env: env.from_sequence(1, 9).filter(bool).map(str).name("x"))["x"],
    }
    assert len(by_kind) == 3


def test_a_branch_with_uids_elsewhere_changes_nothing() -> None:
    def before(env: StreamExecutionEnvironment) -> None:
        env.from_sequence(1, 9).map(str).name("a").print()

    def after(env: StreamExecutionEnvironment) -> None:
        env.from_sequence(10, 19).uid("new source").name("new").map(str).name("new map").uid("new map")
        stream = env.from_sequence(1, 9)
        stream.map(repr).name("new branch").uid("new branch")
        stream.map(str).name("a").print()

    old, new = ids(before), ids(after)
    assert {name: new[name] for name in old} == old


def test_a_new_branch_of_another_kind_changes_nothing() -> None:
    def after(env: StreamExecutionEnvironment) -> None:
        stream = env.from_sequence(1, 9)
        stream.filter(bool).name("new").print().name("second")
        stream.map(str).name("a").print()

    old = ids(lambda env: env.from_sequence(1, 9).map(str).name("a").print())
    assert ids(after)["a"] == old["a"]


def test_equal_uid_hashes_are_refused() -> None:
    def write(env: StreamExecutionEnvironment) -> None:
        env.from_sequence(1, 9).map(str).name("a").set_uid_hash("0" * 32).map(str).name("b").set_uid_hash("0" * 32)

    with pytest.raises(GraphError, match="'a' and 'b' have the same operator id"):
        ids(write)


def test_every_operator_needs_a_uid_when_generated_ones_are_disabled() -> None:
    def write(env: StreamExecutionEnvironment) -> None:
        env.get_config().disable_auto_generated_uids()
        env.from_sequence(1, 9).uid("numbers").map(str).name("text")

    with pytest.raises(GraphError, match="'text' has no uid"):
        ids(write)
