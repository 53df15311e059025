"""Any history of allowed changes of a class: state of every version, in one checkpoint, is read by the last one."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import Any, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rekindle.common import aliases
from rekindle.common.typeinfo import infer_type_info
from rekindle.serde import value_codec_for
from rekindle.serde.column_migration import column_migration
from rekindle.serde.type_schema import decode_schema, encode_schema

NAMES = list("abcdef")
#: Type -> a default, and what the type may become: another type, and what a value becomes.
TYPES: dict[Any, tuple[Any, list[tuple[Any, Any]]]] = {
    int: (7, [(float, float), (int | None, lambda value: value)]),
    float: (0.5, [(float | None, lambda value: value)]),
    int | None: (None, [(float | None, lambda value: None if value is None else float(value))]),
    float | None: (1.5, []),
    str: ("new", [(str | None, lambda value: value)]),
    str | None: (None, []),
    list[int]: ([3], [(list[float], lambda value: list(map(float, value)))]),
    list[float]: ([], []),
}
KINDS = ("dataclass", "struct", "array")


class Field(NamedTuple):
    name: str
    type: Any
    aliases: tuple[str, ...] = ()


@dataclass
class Version:
    """A version of the class, and what becomes of a value of the version before, given as a dict."""

    kind: str
    fields: list[Field]
    steps: list[tuple[str, str, Any]] = field(default_factory=list)  # (new name, old name, conversion)

    def build(self) -> type:
        described = [(each.name, each.type, default_of(each.type)) for each in self.fields]
        if self.kind == "dataclass":
            cls: type = make_dataclass(
                "Kept", [(name, hint, field(default_factory=make)) for name, hint, make in described]
            )
        else:
            fields = [(name, hint, msgspec.field(default_factory=make)) for name, hint, make in described]
            cls = msgspec.defstruct("Kept", fields, module=__name__, array_like=self.kind == "array")
        return aliases(**{each.name: each.aliases for each in self.fields if each.aliases})(cls)

    def moved(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of the version before, in this version."""
        found = {name: convert(values[old]) for name, old, convert in self.steps}
        return {each.name: found.get(each.name, TYPES[each.type][0]) for each in self.fields}


def default_of(hint: Any) -> Any:
    default = TYPES[hint][0]
    return lambda: list(default) if isinstance(default, list) else default


def same(value: Any) -> Any:
    return value


@st.composite
def histories(draw: Any) -> list[Version]:
    """The first version has some fields; each later one changes some, drops some, adds some, and shuffles them."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    versions = [
        Version(draw(st.sampled_from(KINDS)), [Field(name, draw(st.sampled_from(list(TYPES)))) for name in names])
    ]
    for number in range(draw(st.integers(1, 3))):
        before, after, steps = versions[-1].fields, [], []
        used = {name for version in versions for each in version.fields for name in (each.name, *each.aliases)}
        for each in before:
            change = draw(st.sampled_from(["keep", "drop", "widen", "rename"]))
            wider = TYPES[each.type][1]
            if change == "drop":
                continue
            if change == "widen" and wider:
                hint, convert = draw(st.sampled_from(wider))
                after.append(Field(each.name, hint, each.aliases))
                steps.append((each.name, each.name, convert))
            elif change == "rename":
                name = f"{each.name}{number}"
                after.append(Field(name, each.type, (each.name, *each.aliases)))
                steps.append((name, each.name, same))
            else:
                after.append(each)
                steps.append((each.name, each.name, same))
        # A name that was used before would take the values of the field of that name in older parts.
        fresh = [name for name in NAMES if name not in used]
        for name in draw(st.lists(st.sampled_from(fresh), max_size=2, unique=True)) if fresh else []:
            after.append(Field(name, draw(st.sampled_from(list(TYPES)))))
        versions.append(Version(draw(st.sampled_from(KINDS)), draw(st.permutations(after)), steps))
    return versions


@given(histories(), st.data())
def test_values_of_every_version_are_read_by_the_last(versions: list[Version], data: st.DataObject) -> None:
    latest = versions[-1].build()
    codec = value_codec_for(infer_type_info(latest))
    for number, version in enumerate(versions):
        values = {each.name: data.draw(values_of(each.type)) for each in version.fields}
        cls = version.build()
        written = value_codec_for(infer_type_info(cls))
        stored = written.encode_all([cls(**values), None])
        migrate = column_migration(decode_schema(encode_schema(written.schema)), codec)
        found, nothing = codec.decode_all(stored if migrate is None else migrate(stored))
        expected = values
        for later in versions[number + 1 :]:
            expected = later.moved(expected)
        assert nothing is None
        assert repr(found) == repr(latest(**read_at_once(versions, number, values, expected)))


def read_at_once(
    versions: list[Version], number: int, values: dict[str, Any], expected: dict[str, Any]
) -> dict[str, Any]:
    """What the last version reads directly: the defaults of fields that came in between are those of its own types."""
    sources = {each.name: each.name for each in versions[number].fields}
    for later in versions[number + 1 :]:
        sources = {name: sources[old] for name, old, _ in later.steps if old in sources}
    return {
        each.name: expected[each.name] if each.name in sources else TYPES[each.type][0] for each in versions[-1].fields
    }


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    return {
        int: st.integers(-(2**53), 2**53),
        float: st.floats(allow_nan=False),
        int | None: st.none() | st.integers(-9, 9),
        float | None: st.none() | st.floats(allow_nan=False),
        str: st.text(max_size=3),
        str | None: st.none() | st.text(max_size=3),
        list[int]: st.lists(st.integers(-9, 9), max_size=2),
        list[float]: st.lists(st.floats(allow_nan=False), max_size=2),
    }[hint]
